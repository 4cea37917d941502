"""The rules of the house that a reader could forget, kept by a machine.

Ratchets (`ALLOWED_*`) may only shrink: a row is taken out when its cause is gone, never added to
make a new violation pass.
"""

import ast
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = {
    "gateway": {"gateway", "governor", "library"},
    "governor": {"governor", "library"},
    "library": {"library"},
}
MODULES = sorted(path for top in LAYERS for path in (ROOT / top).rglob("*.py"))
SEAMS: dict[str, tuple[str, ...]] = {
    "aiohappyeyeballs": ("gateway/upstream/http/pool.py",),
    "aiohttp": ("library/embedding/remote.py",),
    "backports": ("gateway/body/decoding.py",),
    "brotli": ("gateway/body/decoding.py",),
    "click": (
        *("gateway/cli/*", "gateway/bench/command.py", "gateway/bench/progress.py"),
        *("gateway/mcp/command.py", "gateway/hooks/command.py"),
    ),
    "filelock": ("library/lock.py",),
    "httpx": (
        "gateway/cli/client.py",
        "gateway/mcp/carrier.py",
        "gateway/cli/demo.py",
        "gateway/cli/checking/upstream_check.py",
    ),
    "httptools": ("gateway/upstream/http/connection.py",),
    "imagesize": ("governor/counting/images.py",),
    "litellm": ("gateway/upstream/litellm.py",),
    "mcp": ("gateway/mcp/*",),
    "msgspec": ("*",),  # A way to write data down, not a service: no errors of its own to map.
    "numpy": (
        *("library/vectors/*", "library/retrieval/ordering.py", "library/retrieval/candidates.py"),
        *("library/embedding/minilm.py", "library/embedding/onnx.py"),
    ),
    "onnxruntime": ("library/embedding/onnx.py",),
    "orjson": ("*",),
    "pathspec": ("library/extracting/walking.py",),
    "prometheus_client": ("gateway/telemetry.py",),
    "pydantic": ("gateway/mcp/*",),
    "pypdf": ("library/extracting/pdf.py",),
    "quicktok": ("governor/counting/sources.py",),
    "redis": ("library/cache/redis.py",),
    "regex": ("library/grep/grep.py",),
    "rich": ("gateway/cli/tables.py", "gateway/cli/progress.py", "gateway/bench/progress.py"),
    "selectolax": ("library/extracting/html.py",),
    "sqlite3": (
        "library/store/*",
        "library/importing/databases.py",
        "library/verify.py",
        "gateway/bench/fts5.py",
    ),
    "sqlite_utils": ("library/store/migrations.py",),
    "starlette": ("gateway/*",),
    "tantivy": ("library/lexical/*.py",),
    "tokenizers": ("governor/counting/sources.py", "library/embedding/onnx.py"),
    "uvicorn": ("gateway/cli/serving.py",),
}
"""Foreign package -> the modules that may import it. One seam a thing, where its errors end."""
HEAVY = {
    *(
        "aiohttp",
        "litellm",
        "numpy",
        "onnxruntime",
        "rich",
        "sqlite_utils",
        "tokenizers",
        "quicktok",
        "redis",
    ),
    *("backports", "brotli"),
    *("pathspec", "library.extracting.pdf", "library.extracting.html"),
    *("gateway.app", "gateway.cli.serving", "gateway.mcp.carrier", "gateway.mcp.serving"),
    *("gateway.cli.client", "gateway.hooks.briefing"),
}
"""What may be imported inside a function, because its cost is not owed at every start."""
PURE_MAY_IMPORT = {
    *("base64", "binascii", "bisect", "collections", "copy", "dataclasses", "datetime", "enum"),
    *("functools", "hashlib", "heapq", "html", "itertools", "json", "math", "msgspec", "orjson"),
    *("re", "string", "typing", "unicodedata", "zlib", "fnmatch", "ipaddress", "imagesize"),
    *("textwrap", "operator", "struct", "io", "statistics"),
    "urllib.parse",  # The one part of urllib that asks nobody.
    "threading",  # For a lock around remembered results.
}
CLOCKS = {"now", "utcnow", "today", "fromtimestamp"}
FUNCTION_LINES_MAX = 60
MODULE_LINES_MAX = 400
FOLDER_FILES_MAX = 20
ALLOWED_LONG_MODULES: dict[str, int] = {}
ALLOWED_LONG_FUNCTIONS: dict[str, int] = {}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted name of every imported module, function-level imports included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def tops(names: Iterator[str]) -> set[str]:
    return {dotted.partition(".")[0] for dotted in names}


def file_of(dotted: str) -> Path | None:
    """Return the file of one of our modules; None: not a module, or not ours."""
    base = ROOT.joinpath(*dotted.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p in MODULES), None)


def is_pure(path: Path) -> bool:
    return bool(re.search(r"\bPure\b", ast.get_docstring(parsed(path)) or ""))


PURE = [path for path in MODULES if is_pure(path)]


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_layers_only_look_down(path: Path) -> None:
    ours = tops(imported(parsed(path))) & LAYERS.keys()
    assert ours <= LAYERS[name(path).partition("/")[0]]


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_each_foreign_library_has_one_seam(path: Path) -> None:
    foreign = tops(imported(parsed(path))) - sys.stdlib_module_names - LAYERS.keys()
    for library in foreign | (tops(imported(parsed(path))) & {"sqlite3"}):
        assert library in SEAMS, f"{library} has no seam yet: name one in SEAMS"
        assert any(fnmatch(name(path), glob) for glob in SEAMS[library]), library


def test_imports_make_no_cycle() -> None:
    graph = {
        path: {other for dotted in imported(parsed(path)) if (other := file_of(dotted))} - {path}
        for path in MODULES
    }
    list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_only_heavy_libraries_are_imported_inside_functions(path: Path) -> None:
    tree = parsed(path)
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for function in functions:
        for dotted in imported(function):
            own = file_of(dotted) or file_of(dotted.rpartition(".")[0])
            inner = tops(imported(parsed(own))) if own else {dotted.partition(".")[0]}
            inner |= {dotted, dotted.rpartition(".")[0]}
            assert inner & HEAVY, f"{function.name} imports {dotted}"


@pytest.mark.parametrize("path", PURE, ids=name)
def test_pure_modules_do_no_io(path: Path) -> None:
    tree = parsed(path)
    for dotted in imported(tree):
        own = file_of(dotted) or file_of(dotted.rpartition(".")[0])
        if own:
            assert own in PURE or own.name in ("errors.py", "__init__.py"), f"{dotted} is not pure"
        else:
            package = ".".join(dotted.split(".")[:2]) if dotted.startswith("urllib") else dotted
            assert {package, dotted.partition(".")[0]} & PURE_MAY_IMPORT, dotted
    protocols = [
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases)
        for inner in ast.walk(node)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef):
            assert node in protocols, node.name
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("open", "print", "input"), called
            assert called.rpartition(".")[2] not in CLOCKS, called


@pytest.mark.parametrize(
    "path", [path for path in MODULES if not name(path).startswith("gateway/")], ids=name
)
def test_only_the_gateway_reads_the_environment(path: Path) -> None:
    names = {node.attr for node in ast.walk(parsed(path)) if isinstance(node, ast.Attribute)}
    assert not names & {"environ", "getenv"}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_nothing_outgrows_a_reader(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= ALLOWED_LONG_MODULES.get(name(path), MODULE_LINES_MAX)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines_max = ALLOWED_LONG_FUNCTIONS.get(f"{name(path)}:{node.name}", FUNCTION_LINES_MAX)
            assert node.end_lineno - node.lineno < lines_max, node.name


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in MODULES}), ids=lambda folder: name(folder)
)
def test_no_folder_outgrows_its_noun(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= FOLDER_FILES_MAX


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_modules_are_named_after_what_they_are(path: Path) -> None:
    assert not {"utils", "helpers", "common", "manager"} & {path.stem, path.parent.name}


def test_every_setting_is_used_by_some_code() -> None:
    """A setting that changes nothing is a promise nobody keeps."""
    from gateway.configuration import FIELDS

    used = {
        node.attr
        for path in MODULES
        if name(path) not in ("gateway/configuration.py",)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute)
    }
    assert not FIELDS.keys() - used
