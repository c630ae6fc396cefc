"""LSTMs of torch without gradients: each layer and direction is one kernel, and gives what eager torch gives."""

from collections.abc import Iterator

import pytest
import torch
from torch_cases import Recorded, compiled

STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 5, 7


@pytest.fixture(autouse=True)
def traced_recurrence() -> Iterator[None]:
    """Trace recurrent layers, at which torch breaks graphs by default."""
    with torch._dynamo.config.patch(allow_rnn=True):
        yield


@pytest.mark.filterwarnings("ignore:LSTM with projections")  # of eager torch
@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}, {"bias": False}, {"proj_size": 2}])
@pytest.mark.parametrize("has_state", [False, True])
def test_layers(options: dict[str, int], has_state: bool) -> None:
    torch.manual_seed(0)
    recorded, layer = Recorded(), torch.nn.LSTM(INPUTS, HIDDEN, **options).eval()
    x = torch.randn(STEPS, BATCH, INPUTS)
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    state = [torch.randn(count, BATCH, extent) for extent in (layer.proj_size or HIDDEN, HIDDEN)]
    with torch.no_grad():
        given = (tuple(state),) if has_state else ()
        found, expected = compiled(layer)(x, *given), layer(x, *given)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert recorded.modules
    assert not recorded.reasons


def test_a_layer_of_float64_is_unrolled() -> None:
    recorded, layer = Recorded(), torch.nn.LSTM(INPUTS, HIDDEN).double().eval()
    x = torch.randn(1, BATCH, INPUTS, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(compiled(layer)(x), layer(x))
    assert not recorded.reasons
