"""When calls of compiled code are timed beside the plain function, and which of both is chosen."""

from jitkernels.compiler.dispatch.python_call_stats import CALLS_WITH_LOOPS_BEFORE, MEASURED, Timings


def test_timing_of_both_paths() -> None:
    timings = Timings()
    for compiled, plain in ((3e-5, 1e-5), (4e-5, 2e-5), (5e-5, 1e-5)):
        assert not timings.prefers_plain(has_loops=False)
        timings.note(compiled, is_plain=False)
        assert timings.prefers_plain(has_loops=False)
        timings.note(plain, is_plain=True)
    assert timings.is_settled
    assert timings.prefers_plain(has_loops=True)
    slow = Timings()
    slow.note(3e-5, is_plain=False)
    slow.note(3e-4, is_plain=True)
    assert not slow.prefers_plain(has_loops=False)
    long = Timings()
    long.note(5e-4, is_plain=False)
    assert long.prefers_plain(has_loops=False)
    assert not long.prefers_plain(has_loops=True)


def test_slow_code_is_compared_later() -> None:
    """Python may take a hundred times as long, so that many calls of compiled code have to come first."""
    timings = Timings()
    for _ in range(CALLS_WITH_LOOPS_BEFORE):
        assert timings.chooses_code(has_loops=True) is None
        assert not timings.prefers_plain(has_loops=True)
        timings.note(2e-3, is_plain=False)
    for _ in range(MEASURED):
        assert timings.prefers_plain(has_loops=True)
        timings.note(1e-3, is_plain=True)
    assert timings.chooses_code(has_loops=True) is False
    slowest = Timings()
    slowest.note(1.0, is_plain=False)
    assert slowest.chooses_code(has_loops=True)
