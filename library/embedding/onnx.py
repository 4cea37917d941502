"""A sentence embedder from a folder, run by onnxruntime. The seam to it and to tokenizers.

Import this module when a model is to be loaded: it costs 0.2 s and 40 MB by itself.

One text is run at a time. On a processor that is as fast as batches of equal length and faster than
batches of mixed length (5,490 against 3,280 tokens a second for chat messages of about 22 tokens,
eight at once; one thread, November 2026), it needs the memory of one text, it lets go between two
texts, and a text's row depends on nothing but the text: graphs of int8 numbers, ours and those that
quantisation tools make, take one scale for all that they are given at once.

A run computes on the thread that calls it, and only there, so that the caller chooses how many
there are and how important each is. What it needs on the way is kept for the next one: to take it
from the system for each text, page by page, was a third of a passage's CPU (58 ms against 40 for
256 tokens) and a tenth of a question's. That is 8 MB for each thread that runs the model at once.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state  # type: ignore[import-untyped]
from tokenizers import Tokenizer

from library.embedding.folder import ModelFolder, read_folder
from library.embedding.protocol import ROW_MAX, EmbedderUnavailable

_CHARS_A_TOKEN = 16
"""Further characters of a text of usual words would be cut off anyway."""
_LEAST_NORM = 1e-9
_GIVEN = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
_SENTENCE = "sentence_embedding"
_FAULTS = tuple(
    kind
    for kind in vars(onnxruntime_pybind11_state).values()
    if isinstance(kind, type) and issubclass(kind, Exception)
)
"""onnxruntime's exceptions have no base of their own."""
_LOG_ERRORS = 3

Floats = NDArray[np.float32]


class OnnxModel:
    """A loaded model; its methods block, and may be called from several threads at once."""

    def __init__(self, path: Path) -> None:
        """Load the folder's model and run it once.

        Raises:
            EmbedderUnavailable: a file is missing, damaged, or of a model that makes no rows.

        """
        self._folder = read_folder(path)
        self._tokenizer = _tokenizer(self._folder)
        self._session = _session(self._folder.model)
        self._inputs = [one.name for one in self._session.get_inputs()]
        unknown = set(self._inputs) - set(_GIVEN)
        if unknown:
            names = ", ".join(sorted(unknown))
            raise EmbedderUnavailable(f"{self._folder.model} wants {names}, which no text gives")
        self._output, self._is_pooled = _output(self._session, self._folder.model)
        try:
            self.dim = len(self.row("boathouse", is_question=True))
        except ValueError as error:
            raise EmbedderUnavailable(f"{self._folder.model} {error}") from error
        self.identity = f"onnx:{self._folder.name}:{self._folder.digest[:16]}"

    def row(self, text: str, *, is_question: bool) -> bytes:
        """Return a text's row: int8, (dim,), the unit row times 127.

        Raises:
            ValueError: the model gives no finite row for this text.

        """
        prefix = self._folder.question_prefix if is_question else self._folder.passage_prefix
        values, mask = self._run(prefix + text)
        row = values if self._is_pooled else self._pooled(values, mask)
        if row.ndim != 1 or not np.isfinite(row).all():
            raise ValueError(f"gives no row of finite numbers for a text of {len(text)} characters")
        return _int8(row)

    def count(self, text: str) -> int:
        """Return how many tokens of a text are read."""
        return len(self._encoded(text)[0])

    def _encoded(self, text: str) -> tuple[list[int], list[int]]:
        cut = text[: self._folder.longest_tokens * _CHARS_A_TOKEN]
        # Half a surrogate pair is no character; the tokenizer takes whole ones only.
        encoded = self._tokenizer.encode(cut.encode("utf-8", "replace").decode())
        return encoded.ids, encoded.type_ids

    def _run(self, text: str) -> tuple[Floats, NDArray[np.int64]]:
        """Return the output for one text, without its first dimension, and the mask of tokens."""
        ids, types = self._encoded(text)
        mask = np.ones(len(ids), np.int64)
        given = {
            "input_ids": np.array([ids], np.int64),
            "attention_mask": mask[None],
            "token_type_ids": np.array([types], np.int64),
            "position_ids": np.arange(len(ids), dtype=np.int64)[None],
        }
        try:
            (values,) = self._session.run(
                [self._output], {name: given[name] for name in self._inputs}
            )
        except _FAULTS as error:
            raise ValueError(f"fails: {error}") from error
        return values[0], mask

    def _pooled(self, states: Floats, mask: NDArray[np.int64]) -> Floats:
        assert len(states) == len(mask)
        match self._folder.pooling:
            case "cls":
                return np.asarray(states[0])
            case "max":
                return np.asarray(states.max(axis=0))
            case "lasttoken":
                return np.asarray(states[-1])
            case "mean":
                return np.asarray(states.mean(axis=0))


def _int8(row: Floats) -> bytes:
    norm = max(float(np.linalg.norm(row)), _LEAST_NORM)
    return bytes(np.rint(row * (ROW_MAX / norm)).astype(np.int8))


def _tokenizer(folder: ModelFolder) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(folder.tokenizer))
    except Exception as error:  # tokenizers raises nothing more special.
        raise EmbedderUnavailable(f"{folder.tokenizer} is no tokenizer: {error}") from error
    # The file of a sentence embedder may pad each text to 128 tokens, and cut it there.
    tokenizer.no_padding()
    tokenizer.enable_truncation(folder.longest_tokens)
    return tokenizer


def _session(model: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _LOG_ERRORS
    # By default it takes twice as much each time that it needs more.
    processor = ("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})
    try:
        return onnxruntime.InferenceSession(str(model), options, [processor])
    except _FAULTS as error:
        raise EmbedderUnavailable(f"{model} cannot be loaded: {error}") from error


def _output(session: Any, model: Path) -> tuple[str, bool]:
    """Return the output to read, and whether it is one row a text already."""
    ranks = {one.name: len(one.shape or ()) for one in session.get_outputs()}
    pooled = [name for name, rank in ranks.items() if rank == 2]
    if pooled:
        return (_SENTENCE if _SENTENCE in pooled else pooled[0]), True
    states = [name for name, rank in ranks.items() if rank == 3]
    if not states:
        raise EmbedderUnavailable(f"{model} has no output of a row a text, or a row a token")
    return states[0], False
