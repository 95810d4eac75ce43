"""Which modules the code of a worker imports, directly or through others."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from importlib.util import resolve_name
from types import FunctionType, ModuleType
from typing import Any, Final

_NEVER_DECLARE: Final = frozenset(
    {"agboss_temporal", "agboss_temporal_interceptors", "google", "opentelemetry", "pydantic"}
    | {"pydantic_core", "temporalio", "typing_extensions"}
)


def reachable(targets: Iterable[Any]) -> set[str]:
    """Name the modules that the targets' modules import, directly or through others.

    A module reaches the modules, functions and classes that it has as globals. The import system
    puts every submodule that anybody imports on its package, so from a package to a submodule,
    and from ``import firm.north`` on, only what the source itself names is followed.
    """
    waiting: list[Any] = [getattr(target, "__module__", None) for target in targets]
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if not isinstance(name, str) or name in reached or _is_foreign(name):
            continue
        reached.add(name)
        module = sys.modules.get(name)
        if isinstance(module, ModuleType):
            waiting.extend(_imported_by(module))
    return reached


def _imported_by(module: ModuleType) -> Iterator[Any]:
    own: set[str] = set()
    roots: set[str] = set()
    for name, value in list(vars(module).items()):
        if isinstance(value, (FunctionType, type)):
            yield value.__module__
        elif isinstance(value, ModuleType):
            if _is_inside(value, module):
                own.add(value.__name__)
                continue
            yield value.__name__
            if name == value.__name__ and hasattr(value, "__path__") and not _is_foreign(name):
                roots.add(name)
    if own or roots:
        yield from _named_by(module, own, roots)


def _is_inside(inner: ModuleType, outer: ModuleType) -> bool:
    return str(inner.__name__).startswith(f"{outer.__name__}.")


def _is_foreign(module: str) -> bool:
    """Tell whether a module cannot declare anything: the standard library, the SDK."""
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top in _NEVER_DECLARE


def _named_by(module: ModuleType, own: set[str], roots: set[str]) -> Iterator[str]:
    """Name what the import statements of a module's source reach through packages.

    Args:
        module: The module.
        own: Its submodules, if it is a package.
        roots: Packages that it has under their own names, as ``import firm.north`` leaves them.
    """
    source = _source_of(module)
    if source is not None and not own and not any(f"{root}." in source for root in roots):
        return  # Most sources need not be parsed.
    tree = _parsed(source)
    if tree is None:
        yield from own
        for root in roots:
            yield from _submodules(vars(module)[root])
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = _base(node, module)
            yield from own & {base, *(f"{base}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            yield from own & {alias.name for alias in node.names}
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] in roots:
                    yield from (".".join(parts[:n]) for n in range(1, len(parts) + 1))


def _base(node: ast.ImportFrom, module: ModuleType) -> str:
    relative = "." * node.level + (node.module or "")
    try:
        return resolve_name(relative, vars(module).get("__package__") or "")
    except ImportError:
        return relative


def _source_of(module: ModuleType) -> str | None:
    spec = vars(module).get("__spec__")
    loader: Any = spec.loader if spec is not None else vars(module).get("__loader__")
    name = spec.name if spec is not None else module.__name__
    try:
        source = loader.get_source(name)
    except (AttributeError, ImportError, SyntaxError):
        return None
    return source if isinstance(source, str) else None


def _parsed(source: str | None) -> ast.Module | None:
    try:
        return None if source is None else ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def _submodules(package: ModuleType) -> Iterator[str]:
    for value in list(vars(package).values()):
        if isinstance(value, ModuleType) and _is_inside(value, package):
            yield value.__name__
