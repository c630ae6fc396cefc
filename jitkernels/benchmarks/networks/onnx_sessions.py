"""onnxruntime's sessions, which models are compared with."""

from typing import Any

from jitkernels.errors import NotUsableError

WITHOUT_ONNXRUNTIME = "comparing models needs onnxruntime: pip install onnxruntime"


def session_of(content: Any, threads: int) -> Any:
    """A session of so many threads, with all optimisations of graphs, which are its default; `content`: path or bytes.

    Raises NotUsableError where onnxruntime is not installed or cannot run the model.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise NotUsableError(f"{WITHOUT_ONNXRUNTIME} ({error})") from error
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads, chosen.inter_op_num_threads, chosen.log_severity_level = threads, 1, 3
    try:
        return onnxruntime.InferenceSession(content, chosen, providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no base class of their own
        raise NotUsableError(f"onnxruntime does not run this model: {error}") from error
