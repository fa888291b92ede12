"""What the names in a script for MLSDK stand for, as far as the text alone says it.

A name is known if all its bindings in a scope agree: imports of MLSDK, results of its calls,
annotations, arguments of the script's own functions. What is unknown is not judged.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import types
import typing
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch

from ..errors import PycompilerError
from ..runtime.proxy import TensorProxy
from .install import PACKAGES, SOURCES

#: How often a script is read: a value may pass through that many functions, in any order.
_ROUNDS = 12
_SELF = object()
_OURS = "pycompiler"
_Def = ast.FunctionDef | ast.AsyncFunctionDef
_Function = _Def | ast.Lambda
_Scoped = ast.ClassDef | _Function
_MODULES = [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCES.rglob("*.py")
]


@dataclass(eq=False)
class Scope:
    """Names of a module, class or function. ``bound`` are those of this round, ``known`` before."""

    node: ast.AST
    outer: Scope | None
    bound: dict[str, Known | None] = field(default_factory=dict)
    known: dict[str, Known | None] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)

    def bind(self, name: str, value: Known | None) -> None:
        """Note a binding; two that differ make the name unknown."""
        self.bound[name] = value if self.bound.get(name, value) == value else None

    def find(self, name: str) -> Known | None:
        """Return what a name stands for here; names of a class end in the class."""
        scope: Scope | None = self
        while scope is not None:
            visible = scope is self or not isinstance(scope.node, ast.ClassDef)
            if visible and name in scope.known.keys() | scope.parameters:
                return scope.known.get(name)
            scope = scope.outer
        return None

    def owner(self) -> Scope | None:
        """Return the class around this scope."""
        scope: Scope | None = self
        while scope is not None and not isinstance(scope.node, ast.ClassDef):
            scope = scope.outer
        return scope


@dataclass(frozen=True)
class Known:
    """Something of MLSDK, an object of a type, or a function of the script (its scope)."""

    what: Any
    instance: bool = False
    name: str = ""

    def signature(self) -> inspect.Signature:
        """Return how it is called."""
        return inspect.signature(self._call())

    def result(self) -> Known | None:
        """Return what a call of it gives."""
        if isinstance(self.what, Scope):
            return self.what.known.get("return")
        if isinstance(self.what, type) and not self.instance:
            return Known(self.what, True, self.what.__name__)
        return _of_type(_hints(self._call()).get("return"))

    def item(self) -> Known | None:
        """Return what a subscript of it gives."""
        is_dict = self.instance and typing.get_origin(self.what) is dict
        return _of_type(typing.get_args(self.what)[1]) if is_dict else None

    def member(self, name: str) -> Known | None:
        """Return an attribute; None if it is not known what it is. AttributeError if none is so."""
        full = f"{self.name}.{name}"
        if not self.instance:
            return Known(found, name=full) if _is_ours(found := getattr(self.what, name)) else None
        if not isinstance(self.what, type):
            return None
        found = inspect.getattr_static(self.what, name, None)
        if isinstance(found, property):
            return _of_type(_hints(found.fget).get("return"))
        if isinstance(found, types.FunctionType):
            return Known(types.MethodType(found, _SELF), name=full)
        if found is not None:
            return Known(getattr(self.what, name), name=full)
        made = {n for c in self.what.__mro__ for n in _names_in(vars(c).get("__init__"))}
        if name in (hints := _hints(self.what)) or name in made:
            return _of_type(hints.get(name))
        on_host = self.what is TensorProxy and hasattr(torch.Tensor, name)
        if on_host and not name.endswith("_"):
            return None
        raise AttributeError(name)

    def names(self) -> list[str]:
        """Return the names of its attributes."""
        return [*dir(self.what), *_hints(self.what)]

    def callable(self) -> bool:
        """Whether it is something of MLSDK that can be called."""
        if self.instance:
            return isinstance(self._call(), types.MethodType)
        return not isinstance(self.what, Scope | types.ModuleType) and callable(self.what)

    def _call(self) -> Any:
        own = getattr(self.what, "__call__", None) if self.instance else None  # noqa: B004
        return types.MethodType(own, _SELF) if isinstance(own, types.FunctionType) else self.what


def _names_in(function: Any) -> tuple[str, ...]:
    code = getattr(function, "__code__", None)
    return code.co_names if code is not None else ()


def _hints(owner: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(inspect.unwrap(owner))
    except (NameError, TypeError, AttributeError):
        return {}


def _is_ours(what: Any) -> bool:
    module = (
        what.__name__ if isinstance(what, types.ModuleType) else getattr(what, "__module__", "")
    )
    return str(module).split(".")[0] in (_OURS, *PACKAGES)


def _of_type(annotation: Any) -> Known | None:
    """Return an object of an annotated type that is worth knowing."""
    parts = [part for part in typing.get_args(annotation) if part is not types.NoneType]
    if isinstance(annotation, types.UnionType) and len(parts) == 1:
        return _of_type(parts[0])
    ours = isinstance(annotation, type) and _is_ours(annotation)
    if ours or typing.get_origin(annotation) is dict:
        return Known(annotation, True, getattr(annotation, "__name__", "dict"))
    return None


def refuses(called: Known) -> PycompilerError | None:
    """Return the diagnostic of a function that always raises one."""
    if called.instance or _hints(called.what).get("return") is not NoReturn:
        return None
    try:
        called.what(*[None] * len(called.signature().parameters))
    except PycompilerError as problem:
        return problem
    return None


def module_of(name: str) -> types.ModuleType | None:
    """Import a module of MLSDK as a script does; None if there is none."""
    before = sys.path[:]
    sys.path.insert(0, str(SOURCES))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None
    finally:
        sys.path[:] = before


def _names_from(module: str, name: str) -> list[str]:
    """Return the names that an import of ``name`` from a module gives; a star gives many."""
    star = name == "*" and module.split(".")[0] in PACKAGES
    return (star and [n for n in dir(module_of(module)) if n[0] != "_"]) or [name]


class NamesOfScript:
    """Reads a script until its names are known, and once more to judge (``settled``)."""

    def __init__(self, tree: ast.Module):
        self.settled = False
        self._scopes: dict[ast.AST, Scope] = {}
        for left in range(_ROUNDS, 0, -1):
            judged, scope = self.settled, self._scope(tree, None)
            for statement in tree.body:
                self._visit(statement, scope)
            if judged:
                break
            scopes = self._scopes.values()
            self.settled = left == 2 or all(one.known == one.bound for one in scopes)
            for one in scopes:
                one.known, one.bound = one.bound, {}

    @abstractmethod
    def unknown(self, node: ast.AST, owner: str, name: str, known: Iterable[str]) -> None:
        """Hear of a name that ``owner`` does not have."""

    @abstractmethod
    def call(self, node: ast.Call, called: Known) -> None:
        """Hear of a call of something of MLSDK."""

    def _scope(self, node: ast.AST, outer: Scope | None) -> Scope:
        return self._scopes.setdefault(node, Scope(node, outer))

    def _visit(self, node: ast.AST, scope: Scope) -> None:
        inner = self._scope(node, scope) if isinstance(node, _Scoped) else scope
        if isinstance(node, _Function):
            for one in (one for one in ast.walk(node.args) if isinstance(one, ast.arg)):
                inner.parameters.add(one.arg)
                if one.annotation is not None:
                    inner.bind(one.arg, self._annotated(one.annotation, scope))
        if isinstance(node, _Def | ast.ClassDef):
            scope.bind(node.name, Known(inner) if isinstance(node, _Def) else None)
        done = self._assigned(node, scope)
        for child in ast.iter_child_nodes(node):
            if child is not done:
                self._visit(child, inner)
        self._bind_or_judge(node, scope)

    def _bind_or_judge(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    first = alias.name.split(".")[0]
                    found = self._imported(alias.name, None, node)
                    if found is not None and not alias.asname and first != alias.name:
                        found = self._imported(first, None, node)
                    scope.bind(alias.asname or first, found)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                for alias in names:
                    for name in _names_from(module, alias.name):
                        scope.bind(alias.asname or name, self._imported(module, name, node))
            case ast.Name(id=name, ctx=ast.Store()):
                scope.bind(name, None)
            case ast.Return(value=ast.expr() as value):
                scope.bind("return", self._infer(value, scope))
            case ast.Attribute(value=value, attr=name, ctx=ast.Load()):
                self._look_up(node, self._infer(value, scope), name)
            case ast.Call(func=function):
                called = self._infer(function, scope)
                if called is not None and isinstance(called.what, Scope):
                    self._pass(node, called.what, scope)
                elif called is not None and called.callable():
                    self.call(node, called)

    def _look_up(self, node: ast.AST, owner: Known | None, name: str) -> None:
        if owner is None or isinstance(owner.what, Scope):
            return
        try:
            owner.member(name)
        except AttributeError:
            self.unknown(node, owner.name, name, owner.names())

    def _imported(self, module: str, name: str | None, node: ast.AST) -> Known | None:
        """Return a module, or a name of it; None if it is not of MLSDK, or unknown."""
        if module.split(".")[0] not in PACKAGES:
            return None
        loaded = module_of(module)
        if loaded is None:
            self.unknown(node, "", module, _MODULES)
            return None
        if name is None:
            return Known(loaded, name=module)
        found = getattr(loaded, name, None) or module_of(f"{module}.{name}")
        if found is None:
            self.unknown(node, module, name, dir(loaded))
        return Known(found, name=name) if _is_ours(found) else None

    def _assigned(self, node: ast.AST, scope: Scope) -> ast.AST | None:
        """Bind the targets of an assignment to names; return the target if that is done."""
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=targets) as done], value=ast.Tuple(elts=values)
            ):
                found = [self._infer(value, scope) for value in values]
            case ast.Assign(targets=[done], value=value):
                targets, found = [done], [self._infer(value, scope)]
            case ast.AnnAssign(target=done, annotation=annotation):
                targets, found = [done], [self._annotated(annotation, scope)]
            case _:
                return None
        plain = len(targets) == len(found)
        for target, own in zip(targets, found, strict=False):
            match target:
                case ast.Name(id=name):
                    scope.bind(name, own if plain else None)
                case ast.Attribute(value=ast.Name(id="self"), attr=name) if owner := scope.owner():
                    owner.bind(f"self.{name}", own)
                    plain = False
                case _:
                    plain = False
        return done if plain else None

    def _pass(self, call: ast.Call, inner: Scope, scope: Scope) -> None:
        """Bind the parameters of a function of the script to the arguments of a call."""
        assert isinstance(inner.node, _Def)
        given = inner.node.args
        places = {one.arg: one for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
        named = [(k.arg, k.value) for k in call.keywords]
        for name, value in [*zip(places, call.args, strict=False), *named]:
            if name in places and places[name].annotation is None:
                inner.bind(name, self._infer(value, scope))

    def _annotated(self, node: ast.expr, scope: Scope) -> Known | None:
        """Return an object of the type that an annotation names."""
        match node:
            case ast.Constant(value=str(text)):
                try:
                    return self._annotated(ast.parse(text, mode="eval").body, scope)
                except SyntaxError:
                    return None
            case ast.BinOp(left=left, right=ast.Constant(value=None)):
                return self._annotated(left, scope)
        found = self._infer(node, scope)
        return found and _of_type(found.what)

    def _infer(self, node: ast.expr, scope: Scope) -> Known | None:
        """Return what an expression stands for; None if that is not known."""
        match node:
            case ast.Name(id=name):
                return scope.find(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if owner := scope.owner():
                return owner.known.get(f"self.{name}")
            case ast.Attribute(value=value, attr=name):
                base = self._infer(value, scope)
                if base is None or isinstance(base.what, Scope):
                    return None
                try:
                    return base.member(name)
                except AttributeError:
                    return None
            case ast.Call(func=function):
                called = self._infer(function, scope)
                return called and called.result()
            case ast.Subscript(value=value):
                base = self._infer(value, scope)
                return base and base.item()
        return None
