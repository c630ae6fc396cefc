"""The backend beside other parts of torch: autocast, exported programs, loaders, and caches written in place."""

import io
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torch_cases import Recorded, compiled


def test_autocast_gives_the_values_and_gradients_of_eager_torch() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 4))
    x = torch.randn(3, 16)

    def results(call: Any) -> list[Tensor]:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = call(x)
        return [y, *torch.autograd.grad(y.float().square().sum(), [*model.parameters()])]

    for found, expected in zip(results(compiled(model)), results(model), strict=True):
        torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)


def test_exported_programs_are_compiled_for_all_batches() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5)).eval()
    batch = torch.export.Dim("batch", min=2, max=64)
    file = io.BytesIO()
    torch.export.save(torch.export.export(model, (torch.randn(2, 3, 8, 8),), dynamic_shapes=({0: batch},)), file)
    file.seek(0)
    recorded = Recorded()
    call = compiled(torch.export.load(file).module())
    with torch.no_grad():
        for count in (2, 5, 7):
            x = torch.randn(count, 3, 8, 8)
            torch.testing.assert_close(call(x), model(x), rtol=1e-4, atol=1e-5)
    assert len(recorded.modules) <= 2
    assert not recorded.reasons


def test_batches_of_all_sizes_take_two_graphs() -> None:
    recorded = Recorded()
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    call = compiled(model)
    with torch.no_grad():
        for batch in (3, 2, 5, 8, 13, 64, 100, 33, 3):
            x = torch.randn(batch, 16)
            torch.testing.assert_close(call(x), model(x))
    assert len(recorded.modules) <= 2


def _write_row(cache: Tensor, row: Tensor, place: Any) -> Tensor:
    cache[:, place] = row
    return cache.sum(-1)


def _copy_rows(cache: Tensor, row: Tensor, place: Any) -> Tensor:
    cache.index_copy_(1, place, row[:, None])
    return cache.sum(-1)


def _write_slice(cache: Tensor, row: Tensor, place: Any) -> Tensor:
    cache[:, 2:3].copy_(row[:, None])
    return cache * 2


@pytest.mark.parametrize(
    ("function", "place"),
    [(_write_row, 3), (_write_row, torch.tensor(3)), (_copy_rows, torch.tensor([3])), (_write_slice, None)],
)
def test_caches_are_written_where_they_lie(function: Any, place: Any) -> None:
    cache, row = torch.zeros(2, 8, 4), torch.randn(2, 4)
    own, address = cache.clone(), cache.data_ptr()
    torch.testing.assert_close(compiled(function)(cache, row, place), function(own, row, place))
    torch.testing.assert_close(cache, own)
    assert cache.data_ptr() == address


def test_running_moments_are_updated_where_they_lie() -> None:
    norm, own, x = nn.BatchNorm2d(4), nn.BatchNorm2d(4), torch.randn(3, 4, 5, 5)
    assert norm.running_mean is not None
    address, call = norm.running_mean.data_ptr(), compiled(norm)
    for _ in range(3):
        torch.testing.assert_close(call(x), own(x), rtol=1e-4, atol=1e-5)
    for found, expected in zip(norm.buffers(), own.buffers(), strict=True):
        torch.testing.assert_close(found, expected)
    assert norm.running_mean.data_ptr() == address


def test_sparse_tensors_stay_torchs() -> None:
    x = torch.eye(3).to_sparse()

    def function(x: Tensor, y: Tensor) -> Tensor:
        return torch.sparse.mm(x, y) * 2 + torch.exp(y)

    y = torch.randn(3, 3)
    torch.testing.assert_close(compiled(function)(x, y), function(x, y))
    torch.testing.assert_close(compiled(lambda x: x * 2)(x), x * 2)


def test_meta_tensors_have_shapes_alone() -> None:
    y = compiled(lambda x: (x * 2).sum(0))(torch.empty(3, 4, device="meta"))
    assert (y.device.type, y.shape) == ("meta", (4,))


def _double(x: Tensor) -> Tensor:
    return torch.relu(x) * 2 + 1


class _Compiled(Dataset[Tensor]):  # type: ignore[misc]
    """Items that compiled code makes, in the processes of a loader."""

    def __init__(self, call: Any) -> None:
        self.call = call

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Tensor:
        x: Tensor = self.call(torch.arange(4.0) - index)
        return x


@pytest.mark.parametrize("before", [False, True])
def test_processes_of_loaders_run_compiled_code(before: bool) -> None:
    """`before`: the code is compiled before the processes are forked."""
    call = compiled(_double)
    if before:
        call(torch.arange(4.0))
    items = list(DataLoader(_Compiled(call), batch_size=3, num_workers=2, multiprocessing_context="fork", timeout=120))
    expected = torch.stack([_double(torch.arange(4.0) - i) for i in range(12)])
    torch.testing.assert_close(torch.cat(items), expected)


@pytest.mark.parametrize("accumulates", [False, True])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("values", [(), (1,), (4,), (3, 4), (1, 1, 1)])
def test_masks_choose_what_is_written(axes: int, values: tuple[int, ...], accumulates: bool) -> None:
    """Compiled where a value is for all elements of the mask; else torch's."""
    x, mask = torch.randn(2, 3, 4), torch.randn((2, 3, 4)[:axes]) > 0

    def function(x: Tensor, mask: Tensor, y: Tensor) -> Tensor:
        return x.index_put((mask,), y, accumulates) * 2

    recorded, y = Recorded(), torch.randn(values)
    try:
        expected = function(x, mask, y)
    except (RuntimeError, IndexError):
        return
    torch.testing.assert_close(compiled(function)(x, mask, y), expected)
    assert not recorded.reasons or len(values) > 3 - axes
