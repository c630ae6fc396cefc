"""The commands and their options; each command's code is in its own module, imported when the command runs."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

import jitkernels
from jitkernels.errors import ArgumentError

app = App(
    name="jitkernels",
    help="The fastest CPU kernels for Python, chosen by measurement.",
    version=jitkernels.__version__,
    suppress_keyboard_interrupt=False,
)
cache = App(name="cache", help="Look at, check or empty the folder of built kernels and measurements.")
app.command(cache)

Inputs = Annotated[list[str] | None, Parameter(name="--input", consume_multiple=False)]
Dims = Annotated[list[str] | None, Parameter(name="--dim", consume_multiple=False)]


@app.command
def info(*, kernels: bool = False, json: bool = False) -> int:
    """Show this machine: CPU, threads, launcher, optional libraries (or why one is missing), and the cache.

    Parameters
    ----------
    kernels
        Show instead every implementation of every kernel by dtype: usable here, or why not.
    json
        Print JSON instead of a table.
    """
    from jitkernels.tools.cli import info as command

    return command.kernels(json=json) if kernels else command.run(json=json)


@app.command
def tour(*files: Path) -> int:
    """Find similar text files with four kernels, and show the measurements and the selected implementations.

    Parameters
    ----------
    files
        Text files to compare; default: Python's standard library.
    """
    from jitkernels.tools.cli import tour as command

    return command.run(files)


@app.command
def tune(
    *kernels: str,
    tag: Literal["full", "ci"] = "full",
    force: bool = False,
    seconds: float = 0.04,
    export: Path | None = None,
    imported: Annotated[Path | None, Parameter(name="--import")] = None,
    scheduler: str = "",
) -> int:
    """Measure every implementation of kernels and store the results. An interrupted run resumes when repeated.

    Measures at one thread first; then at the maximum number of threads where that may change the selection.
    --export and --import measure nothing: they write a table of stored measurements to a file, or read one.

    Parameters
    ----------
    kernels
        Kernels to measure, such as vmul; default: all.
    tag
        Which attrs of the kernels' sweeps to measure.
    force
        Measure again what has a stored record.
    seconds
        Measuring time per attr; building its candidates is extra.
    export
        Write the stored measurements to this file, for other machines of this CPU family (see `info`).
    imported
        Use the selections of such a file for attrs without a local record, after checking that they exist.
    scheduler
        Let the workers of this Dask scheduler measure, such as tcp://host:8786: those with the CPU of this machine.
    """
    from jitkernels.tools.cli import tune as command

    if export is not None or imported is not None:
        return command.tables(kernels, export=export, imported=imported)
    return command.run(kernels, tag=tag, force=force, seconds=seconds, scheduler=scheduler)


@app.command
def bench(
    *names: str,
    peers: bool = False,
    contest: bool = False,
    json: Path | None = None,
    report: Path | None = None,
    compare: Annotated[list[Path] | None, Parameter(consume_multiple=False)] = None,
    tag: Literal["tiny", "ci", "full"] = "ci",
    threads: int | None = None,
    seconds: float = 0.25,
    batch: int = 1,
) -> int:
    """Time every implementation, the selected one and its regret over the sweeps of kernels, or run another benchmark.

    Parameters
    ----------
    names
        Kernels such as vmul (default: all); or the name of a benchmark such as launch, followed by kernels or by
        parts of the benchmark, such as programs of expressions.
    peers
        Also time NumPy and other packages.
    contest
        Run whole tasks with the installed compilers; names are then tasks such as pi.
    json
        Write all measurements, with a description of the machine, to this file.
    report
        Write a page with tables and charts, compared with the machine's peak rates, into this folder; needs the
        extra "report".
    compare
        Show changes beyond noise since the run in this file; if given twice, compare two files and run nothing.
    tag
        Which attrs of the kernels' sweeps, and the size of other benchmarks; tiny: only check that they run.
    threads
        Maximum number of threads of kernels and peers.
    seconds
        Time for measuring one line.
    batch
        Images of a call, of the benchmarks models and conv-layers.
    """
    from jitkernels.tools.cli import bench as command

    options = command.Options(peers, json, report, compare or [], tag, threads, seconds, batch)
    return command.run(["contest", *names] if contest else names, options)


@app.command
def run(
    bundle: Path,
    *,
    inputs: Inputs = None,
    output: Path | None = None,
    dim: Dims = None,
    profile: bool = False,
    json: bool = False,
    threads: int | None = None,
) -> int:
    """Run a bundle that `export` of a compiled function wrote, or an ONNX model, and show its outputs.

    Parameters
    ----------
    bundle
        The folder of the bundle, or the file of the model.
    inputs
        An input as a .npy file; repeat the option for each input, in order or as name=x.npy. Inputs of a model that
        are not given are random, the same each time.
    output
        Write the outputs to this file: .npy for a single output, else .npz.
    dim
        The size of a symbolic dimension of a model's random inputs, such as batch=1.
    profile
        Show instead the time, arithmetic rate and memory of each layer of a model.
    json
        Print the profile as JSON.
    threads
        Maximum number of threads of kernels.
    """
    from jitkernels.tools.cli import run as command

    return command.run(bundle, inputs or [], command.RunOptions(output, dim or [], profile, json, threads))


@app.command
def compare(
    model: Path,
    *,
    inputs: Inputs = None,
    dim: Dims = None,
    threads: int | None = None,
    seconds: float = 5.0,
    json: bool = False,
) -> int:
    """Compare an ONNX model with onnxruntime: differences of outputs, time of a call, start-up and memory.

    Parameters
    ----------
    model
        The file of the model.
    inputs
        An input as name=x.npy or, in order, as x.npy. Others are random, the same each time.
    dim
        The size of a symbolic dimension of random inputs, such as batch=1.
    threads
        Threads of both; default: those of jitkernels.
    seconds
        Time for measuring calls.
    json
        Print JSON instead of a table.
    """
    from jitkernels.tools.cli import compare as command

    return command.run(model, feeds=(inputs or [], dim or []), threads=threads, seconds=seconds, json=json)


@app.command
def explain(kernel: str, *fields: str, dim: Dims = None, svg: Path | None = None) -> int:
    """Show every implementation of an attr: usable or why not, its time, and which rule selects which one.

    For a function compiled by `jit`: which operations are fused into one kernel, and what falls back to NumPy and why.
    For an ONNX model: how its nodes run, the kernels of its compiled code, and the memory between these.

    Parameters
    ----------
    kernel
        A kernel such as vmul, a function such as file.py:softmax, or the file of a model.
    fields
        Fields of its attr, such as n=1024 dtype=float32; or arguments of the function, such as float32[128,256] axis=0;
        or inputs of the model as .npy files, random ones in place of those that are not given.
    dim
        The size of a symbolic dimension of a model's random inputs, such as batch=1.
    svg
        Also draw the graph of a function or model with its kernels, those of a model with their times, to this file.
    """
    if ".py:" in kernel:
        from jitkernels.tools.cli import function

        return function.run(kernel, fields, svg)
    if Path(kernel).is_file() or Path(kernel).suffix == ".onnx":
        from jitkernels.tools.cli import explain_model

        return explain_model.run(Path(kernel), fields, dim or [], svg)
    if svg is not None or dim:
        raise ArgumentError(f"{kernel}: expected a function or the file of a model with --svg and --dim")
    from jitkernels.tools.cli import explain as command

    return command.run(kernel, fields)


@app.command
def patch(*names: str, seconds: float = 0.0) -> int:
    """List the functions of NumPy, SciPy and scikit-learn that `jitkernels.patch()` serves, and when.

    Parameters
    ----------
    names
        Packages, modules or functions, such as scipy.special or numpy:nanvar; default: all.
    seconds
        Measure for so long each call of these functions, with and without the patch, and show the times.
    """
    from jitkernels.tools.cli import patch as command

    return command.run(names, seconds=seconds)


@app.command
def docs(
    *,
    check: Path | None = None,
    write: Path | None = None,
    stub: bool = False,
    rules: bool = False,
    onnx: bool = False,
    torch: bool = False,
    patching: bool = False,
    architecture: bool = False,
) -> int:
    """Print the reference of all kernels, generated from the registry schemas.

    Parameters
    ----------
    architecture
        The pictures and tables of ARCHITECTURE.md instead, drawn from the code; in a file, they replace those there.
    rules
        Print the list of all rewrite rules instead; with --write or --check, the list in that page (docs/rules.md).
    onnx
        Print the table of ONNX operators instead; with --write or --check, the table in that page (docs/onnx.md).
    torch
        Print the table of ATen operators instead; with --write or --check, the table in that page (docs/torch.md).
    patching
        Print the table of functions that `jitkernels.patch()` serves; with --write or --check, the table in that
        page (docs/patching.md).
    stub
        Print the type stub of the package, jitkernels/__init__.pyi, instead.
    check
        Compare with this file instead, and exit with 1 if it is stale.
    write
        Write to this file instead.
    """
    from jitkernels.tools.cli import docs as command

    kinds = {
        "architecture": architecture, "rules": rules, "onnx": onnx, "torch": torch, "patching": patching, "stub": stub,
    }  # fmt: skip
    kind = next((name for name, is_wanted in kinds.items() if is_wanted), "")
    return command.run(check=check, write=write, kind=kind)


@cache.command
def show() -> int:
    """Show the cache's folder, contents and size."""
    from jitkernels.tools.cli import cache as command

    return command.show()


@cache.command
def verify() -> int:
    """Check every file of the cache; exit with 1 if one is damaged."""
    from jitkernels.tools.cli import cache as command

    return command.verify()


@cache.command
def pack(file: Path, *names: str) -> int:
    """Write built kernels and measurements to an archive, which JITKERNELS_PACK names on machines without a compiler.

    Parameters
    ----------
    file
        The file to write.
    names
        Kernels; or module:function, of a module that is installed or in the working directory: it is called without
        arguments, and what it loads is archived. Default: all kernels.
    """
    from jitkernels.tools.cli import cache as command

    return command.pack(file, names)


@cache.command
def wheel(folder: Path, *packs: Path) -> int:
    """Write a wheel of archives: installed beside the package, it is read without JITKERNELS_PACK.

    Parameters
    ----------
    folder
        The folder to write to.
    packs
        Archives of `cache pack`, of one Python and NumPy, each for a CPU family of its own.
    """
    from jitkernels.tools.cli import cache as command

    return command.wheel(folder, packs)


@cache.command
def clear(*, older: Annotated[bool, Parameter(name="--other-environments")] = False) -> int:
    """Delete built kernels and measurements.

    Parameters
    ----------
    older
        Keep those of the present environment.
    """
    from jitkernels.tools.cli import cache as command

    return command.clear(only_others=older)
