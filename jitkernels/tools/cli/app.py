"""The commands and their options; each command's work is in a file of its own, loaded when it runs."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

import jitkernels

app = App(
    name="jitkernels",
    help="The fastest CPU kernels for Python, chosen by measurement.",
    version=jitkernels.__version__,
    suppress_keyboard_interrupt=False,
)
cache = App(name="cache", help="Look at, check or empty the folder of built kernels and measurements.")
app.command(cache)


@app.command
def info(*, kernels: bool = False, json: bool = False) -> int:
    """Show this machine, the threads, the launcher, the libraries found or why not, and the cache.

    Parameters
    ----------
    kernels
        Every implementation of every kernel instead, by dtype: usable here, or why not.
    json
        JSON instead of a table.
    """
    from jitkernels.cli import info as command

    return command.kernels(json=json) if kernels else command.run(json=json)


@app.command
def tour(*files: Path) -> int:
    """Find which text files are alike, with four kernels, and show what was measured and chosen.

    Parameters
    ----------
    files
        Text files to compare; Python's own standard library when none is given.
    """
    from jitkernels.cli import tour as command

    return command.run(files)


@app.command
def tune(
    *kernels: str,
    tag: Literal["full", "ci"] = "full",
    force: bool = False,
    seconds: float = 0.04,
    export: Path | None = None,
    imported: Annotated[Path | None, Parameter(name="--import")] = None,
) -> int:
    """Measure every implementation of kernels and keep the results. Interrupted, it goes on where it was.

    That is done on one thread first, and then, where it may change the pick, on as many as kernels may use.
    With --export or --import nothing is measured: a table of what was measured goes to a file, or comes from one.

    Parameters
    ----------
    kernels
        Kernels to measure, such as vmul; all when none is given.
    tag
        Which attrs of the kernels' sweeps.
    force
        Measure again what has been measured already.
    seconds
        Time for timing one attr; building its candidates comes on top.
    export
        Write what was measured here to this file, for other machines of this family of CPUs, which `info` names.
    imported
        Take the picks of such a file for what is not measured here, after checking that they exist.
    """
    from jitkernels.cli import tune as command

    if export is not None or imported is not None:
        return command.tables(kernels, export=export, imported=imported)
    return command.run(kernels, tag=tag, force=force, seconds=seconds)


@app.command
def bench(
    *names: str,
    peers: bool = False,
    contest: bool = False,
    json: Path | None = None,
    report: Path | None = None,
    compare: Annotated[list[Path] | None, Parameter(consume_multiple=False)] = None,
    tag: Literal["ci", "full"] = "ci",
    threads: int | None = None,
    seconds: float = 0.25,
) -> int:
    """Time every implementation, the pick and its regret over the sweeps of kernels, or run another benchmark.

    Parameters
    ----------
    names
        Kernels such as vmul, all when none is given; or first the name of a benchmark such as launch, and then kernels
        or what it consists of, such as programs of expressions.
    peers
        Time what NumPy and other packages have, too.
    contest
        Let compilers that are installed do whole tasks; names are then tasks such as pi.
    json
        Write every figure, with the machine's stamp, to this file.
    report
        Write a page with tables and charts into this folder, beside what this machine can do at most; needs the extra
        "report".
    compare
        Show what changed beyond noise since the run in this file; given twice, compare two files and run nothing.
    tag
        Which attrs of the kernels' sweeps, and how much of other benchmarks.
    threads
        The most threads that kernels and peers may use.
    seconds
        Time for timing one line.
    """
    from jitkernels.cli import bench as command

    return command.run(
        ["contest", *names] if contest else names,
        peers=peers,
        json=json,
        report=report,
        against=compare or [],
        tag=tag,
        threads=threads,
        seconds=seconds,
    )


@app.command
def run(
    bundle: Path,
    *,
    inputs: Annotated[list[Path] | None, Parameter(name="--input", consume_multiple=False)] = None,
    output: Path | None = None,
) -> int:
    """Run a bundle that `export` of a compiled function wrote, and show its outputs.

    Parameters
    ----------
    bundle
        The folder.
    inputs
        A file of NumPy's (.npy); given once for each input, in order.
    output
        Write the outputs to this file: as .npy if there is one, else as .npz.
    """
    from jitkernels.cli import run as command

    return command.run(bundle, inputs or [], output)


@app.command
def explain(kernel: str, *fields: str) -> int:
    """Show every implementation of an attr: usable or why not, its time, who is chosen by which rule.

    Of a function that `jit` compiles: which operations are one kernel, what is left to NumPy and why.

    Parameters
    ----------
    kernel
        A kernel such as vmul, or a function such as file.py:softmax.
    fields
        Fields of its attr, such as n=1024 dtype=float32; arguments of the function, such as float32[128,256] axis=0.
    """
    if ".py:" in kernel:
        from jitkernels.cli import function

        return function.run(kernel, fields)
    from jitkernels.cli import explain as command

    return command.run(kernel, fields)


@app.command
def docs(*, check: Path | None = None, write: Path | None = None, stub: bool = False) -> int:
    """Print the reference of all kernels, generated from their rows.

    Parameters
    ----------
    stub
        The types of the package, jitkernels/__init__.pyi, instead of the reference.
    check
        Compare with this file instead, and exit with 1 if it is stale.
    write
        Write to this file instead.
    """
    from jitkernels.cli import docs as command

    return command.run(check=check, write=write, stub=stub)


@cache.command
def show() -> int:
    """Show where the cache is, what is in it and how large it is."""
    from jitkernels.cli import cache as command

    return command.show()


@cache.command
def verify() -> int:
    """Check every file of the cache; exit with 1 if one is damaged."""
    from jitkernels.cli import cache as command

    return command.verify()


@cache.command
def pack(file: Path, *names: str) -> int:
    """Put built kernels and measurements in one file, which JITKERNELS_PACK names where there is no compiler.

    Parameters
    ----------
    file
        The file to write.
    names
        Kernels; or module:function, which is called, without arguments, and all that it uses is packed. All
        kernels if there are none.
    """
    from jitkernels.cli import cache as command

    return command.pack(file, names)


@cache.command
def clear(*, older: Annotated[bool, Parameter(name="--other-environments")] = False) -> int:
    """Delete built kernels and measurements.

    Parameters
    ----------
    older
        Keep those of the present environment.
    """
    from jitkernels.cli import cache as command

    return command.clear(only_others=older)
