"""The tests of NumPy, SciPy and scikit-learn under the patch: the same ones fail as without it."""

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

PLUGIN = "jitkernels.patching.pytest_plugin"
SUITES = {
    "sklearn.metrics.tests.test_pairwise": "argmin or kernel or paired or cosine",
    "sklearn.cluster.tests.test_k_means": "elkan_results or relocat or predict or plusplus",
    "sklearn.decomposition.tests.test_pca": "pca_inverse or whitening",
    "sklearn.utils.tests.test_extmath": "row_norms or softmax",
    "sklearn.preprocessing.tests.test_data": "normalize or scaler_1d",
    "scipy.spatial.tests.test_distance": "euclidean or cosine",
    "scipy.special.tests.test_logsumexp": "softmax or basic or gh18295",
    "scipy.special.tests.test_logit": "",
    "scipy.special.tests.test_sf_error": "",
    "scipy.special.tests.test_basic": "erf or xlog or entr",
    "numpy.lib.tests.test_nanfunctions": "nanmean or nanvar or nanstd or NanFunctions_MeanVarStd",
    "numpy.linalg.tests.test_linalg": "Norm",
    "numpy.fft.tests.test_pocketfft": "",
    "numpy.lib.tests.test_function_base": "Average",
    "numpy._core.tests.test_numeric": "var or std",
}
"""Modules of tests, and which tests of them run with each push."""
MAX_SECONDS = 1800
"""The longest of them takes five minutes on a machine of two cores."""
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def run(folder: Path, module: str, *options: str) -> tuple[set[str], int]:
    """The tests that fail, and the number of those that pass."""
    words = [sys.executable, "-P", "-m", "pytest", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*words, "-o", "addopts=", "--pyargs", module, *options], cwd=folder, capture_output=True, text=True,
        timeout=MAX_SECONDS, check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed, done.stdout + done.stderr
    return set(FAILED.findall(done.stdout)), int(passed[1])


def compare(folder: Path, module: str, *options: str) -> None:
    call = partial(run, folder, module, *options)
    assert call("-p", PLUGIN) == call()


@pytest.mark.per_push(4)
@pytest.mark.parametrize("module", SUITES)
def test_selected_tests(module: str, tmp_path: Path) -> None:
    compare(tmp_path, module, "-k", SUITES[module] or "test")


@pytest.mark.full
@pytest.mark.parametrize("module", SUITES)
def test_all_tests(module: str, tmp_path: Path) -> None:
    compare(tmp_path, module)
