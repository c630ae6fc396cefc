"""Models of torch, compiled: outputs and gradients are those of eager torch."""

from collections.abc import Iterator

import pytest
import torch
from torch_cases import MODELS, Recorded, compiled, made, step

pytestmark = pytest.mark.usefixtures("traced_recurrence")
STAYING = {"aten.randn_like.default"}
"""Random numbers."""


@pytest.fixture
def traced_recurrence() -> Iterator[None]:
    """Trace recurrent layers, at which torch breaks graphs by default."""
    with torch._dynamo.config.patch(allow_rnn=True):
        yield


@pytest.mark.parametrize("name", MODELS)
def test_inference(name: str) -> None:
    recorded = Recorded()
    model, x = made(name)
    model.eval()
    with torch.no_grad():
        call = compiled(model)
        for _ in range(2):
            torch.manual_seed(1)
            found = call(x)
            torch.manual_seed(1)
            torch.testing.assert_close(found, model(x), rtol=1e-4, atol=1e-5)
    assert recorded.modules
    assert set(recorded.reasons) <= STAYING


@pytest.mark.parametrize("name", MODELS)
def test_training_step(name: str) -> None:
    recorded = Recorded()
    model, x = made(name)
    expected = step(model, model, x)
    for _ in range(2):
        model, x = made(name)
        for found, right in zip(step(model, compiled(model), x), expected, strict=True):
            torch.testing.assert_close(found, right, rtol=1e-3, atol=1e-5)
    assert set(recorded.reasons) <= STAYING


def test_optimizer_steps_give_the_losses_of_eager_torch() -> None:
    losses: list[list[float]] = []
    for is_compiled in (False, True):
        model, x = made("lenet")
        call = compiled(model) if is_compiled else model
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        losses.append([])
        for _ in range(6):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(call(x), torch.tensor([1, 0, 3]))
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_dropout_draws_what_eager_torch_draws() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Dropout(0.5), torch.nn.Linear(64, 3))
    x = torch.randn(4, 8)
    call = compiled(model)
    for _ in range(3):
        torch.manual_seed(7)
        expected = model(x)
        torch.manual_seed(7)
        torch.testing.assert_close(call(x), expected)
