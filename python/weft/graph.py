# SPDX-License-Identifier: Apache-2.0
"""Graphs: built node by node, printed, rewritten by passes, compiled.

``Graph.op`` appends any op of weft by its name, and so does each method of that name: ``g.matmul(a, b)``,
``g.sum(x, axes=[1])``. Sizes are integers, extents of the graph, or expressions over symbols ("n", "2*n + 1").
"""

from __future__ import annotations

import ctypes as C
import functools
import itertools
import os
import tempfile
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, NamedTuple, Sequence, Union

import numpy as np

from . import _c, operators
from ._c import Dim, Val
from .arrays import dense_view
from .context import Context, default_context
from .dtypes import DType, dtype_of
from .extents import fold, number_or_text

if TYPE_CHECKING:
    from .plan import Plan

Size = Union[int, str, Dim]

#: attributes that are numbers, and lists of numbers; all others are integers, words or bodies. tests/test_abi.py
REALS = frozenset("alpha beta bias clip cubic deviation epsilon factor fill gamma high lambda low mean softcap".split())
REAL_LISTS = frozenset("alphas betas parameters region scale".split())

_LARGEST = 2**31 - 1  # of a symbol
_borrowed: dict[int, object] = {}
_borrow_numbers = itertools.count(1)


@_c.RELEASE_CONSTANT
def _release(user: int, data: int) -> None:
    """The last plan that read a borrowed constant is gone: its owner may go too."""
    _borrowed.pop(user, None)


class Known(NamedTuple):
    """The elements of a constant in a text, which lie in memory of ``owner`` and must not change."""

    id: str  #: 32 hexadecimal digits
    address: int
    bytes: int
    owner: object


class Value(operators.Operators):
    """A value of a graph. ``shape`` has symbols at their hints; ``dims`` are extents as the graph has them."""

    __slots__ = ("graph", "raw", "dtype", "dims", "shape", "name")

    def __init__(self, graph: Graph, raw: Val, facts: Any):
        self.graph, self.raw = graph, raw
        self.dtype = DType(facts.dtype)
        self.dims = [Dim(facts.extent[i].bits) for i in range(facts.rank)]
        self.shape: tuple[int, ...] = tuple(facts.hint[: facts.rank])
        self.name: str | None = facts.name.decode() if facts.name else None

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def sizes(self) -> tuple[int | str, ...]:
        """The extents: numbers, and expressions over symbols as text."""
        return tuple(self.graph.size_text(dim) for dim in self.dims)

    @property
    def type(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.sizes))}]"

    def __repr__(self) -> str:
        return f"<weft.Value {'%' + self.name + ': ' if self.name else ''}{self.type}>"


class Graph:
    """A graph, empty at first. It keeps its context, and its values keep it."""

    def __init__(self, context: Context | None = None, name: str = "graph", *, handle: C.c_void_p | None = None,
                 parent: Graph | None = None):
        self.context = context or default_context()
        self.parent = parent
        if handle is None:
            handle = C.c_void_p()
            self.context.call(_c.lib.weft_graph_create, self.context.handle, name.encode(), C.byref(handle))
        self.handle = handle
        self._source: Callable[[Context], Graph] | None = None  # reads it again, as long as it is as it was read
        if parent is None:
            weakref.finalize(self, _c.lib.weft_graph_destroy, handle).atexit = False

    @classmethod
    def of_text(cls, context: Context, text: str, known: Sequence[Known] = ()) -> Graph:
        """The graph of a weft text, with the elements of constants that it writes as ``blob=`` and an id."""
        raw, handle, numbers, listed = text.encode(), C.c_void_p(), [], []
        for k in known:
            numbers.append(next(_borrow_numbers))
            _borrowed[numbers[-1]] = k.owner
            listed.append(_c.KnownConstant(k.id.encode(), k.address, k.bytes, C.cast(_release, C.c_void_p).value,
                                           numbers[-1]))
        options = _c.sized(_c.LoadOptions, name=b"text", constants=_c.array_of(_c.KnownConstant, listed),
                           constant_count=len(listed))
        try:
            context.call(_c.lib.weft_load_memory, context.handle, C.cast(C.c_char_p(raw), C.c_void_p), len(raw),
                         C.byref(options), C.byref(handle))
        except BaseException:
            for number in numbers:
                _borrowed.pop(number, None)
            raise
        return cls(context, handle=handle)

    # --- sizes

    def dim(self, size: Size) -> Dim:
        """An extent: a constant, an expression over symbols as text, or what is one already. A symbol that is new may
        have any size; ``symbol`` narrows it."""
        if isinstance(size, Dim):
            return size
        if isinstance(size, str):
            return fold(size, self.dim, self.symbol, self.combine)
        return _c.lib.weft_extent(int(size))

    def combine(self, op: str, a: Size, b: Size) -> Dim:
        """a op b for op in + - * / (floor) % m (min) M (max)."""
        out = Dim()
        self.context.call(_c.lib.weft_extent_combine, self.handle, op.encode(), self.dim(a), self.dim(b), C.byref(out))
        return out

    def symbol(self, name: str, low: int = 0, high: int = _LARGEST, hint: int = 0) -> Dim:
        """The symbol of that name, with sizes from low to high; plans assume the hint (0: none) and are right for
        all."""
        out = Dim()
        self.context.call(_c.lib.weft_symbol, self.handle, name.encode(), low, min(high, _LARGEST), hint, C.byref(out))
        return out

    def product(self, dims: Iterable[Size]) -> Dim:
        return functools.reduce(functools.partial(self.combine, "*"), dims, self.dim(1))

    def dims(self, sizes: Iterable[Size]) -> C.Array:
        """Extents as a C array."""
        return _c.array_of(Dim, map(self.dim, sizes))

    def size_text(self, dim: Dim) -> int | str:
        """An extent as the graph prints it; an integer if it is constant."""
        return number_or_text(self.context.text(_c.lib.weft_extent_text, self.handle, dim))

    # --- inputs and constants

    def read(self, raw: Val) -> Value:
        facts = _c.sized(_c.ValueFacts)
        self.context.call(_c.lib.weft_value_read, self.handle, raw, C.byref(facts))
        return Value(self, raw, facts)

    def _made(self, function: Callable[..., int], *arguments: object) -> Value:
        raw, self._source = Val(), None
        self.context.call(function, self.handle, *arguments, C.byref(raw))
        return self.read(raw)

    def param(self, dtype: Any, sizes: Sequence[Size], mutable: bool = False, name: str | None = None,
              static: bool = False) -> Value:
        """Adds an input. A mutable one is updated by the run: ``returns`` says with what. Of a static one
        ``Execution.refresh`` tells when its elements have changed."""
        if mutable and static:
            raise ValueError("an input is mutable or static, not both")
        make = (_c.lib.weft_param_mut if mutable else _c.lib.weft_param_static if static else _c.lib.weft_param)
        return self._made(make, name.encode() if name else None, dtype_of(dtype), len(sizes), self.dims(sizes))

    def input(self, name: str, dtype: Any, sizes: Sequence[Size], *, mutable: bool = False, static: bool = False,
              layout: str | None = None) -> Value:
        """Adds an input: ``g.input("x", "f32", [64, "n"])``. Its layout is row-major unless one is given, "{1 0}".
        ``static``: weights that change seldom; an execution packs them once (``Execution.refresh``)."""
        value = self.param(dtype, sizes, mutable, name, static)
        if layout is not None:
            self.layout(value, layout)
        return value

    def layout(self, value: Value, text: str) -> None:
        """Requires a layout of a value, "{0 2 3 1}"."""
        self._source = None
        self.context.call(_c.lib.weft_set_layout, self.handle, value.raw, text.encode())

    def constant(self, data: object, dtype: Any = None, *, copy: bool = True) -> Value:
        """A constant with the elements of an array, or of anything that numpy makes one of. With ``copy=False`` the
        memory of the array is read where it lies and must not change; it is kept for as long as plans need it."""
        view = dense_view(data, None if dtype is None else dtype_of(dtype))
        if not copy:
            return self.constant_at(view.dtype, view.shape, view.address, view.owner)
        extent = _c.array_of(C.c_int64, view.shape)
        return self._made(_c.lib.weft_constant, view.dtype, len(view.shape), extent, view.address)

    def constant_at(self, dtype: int, shape: Sequence[int], address: int, owner: object) -> Value:
        """A dense row-major constant that lies at ``address``, in memory of ``owner``, which is kept until the last
        graph or plan that reads it is gone. The memory must not change."""
        extent, number = _c.array_of(C.c_int64, shape), next(_borrow_numbers)
        _borrowed[number] = owner
        try:
            return self._made(_c.lib.weft_constant_borrowed, dtype, len(shape), extent, address,
                              C.cast(_release, C.c_void_p), number)
        except BaseException:
            _borrowed.pop(number, None)
            raise

    def splat(self, dtype: Any, sizes: Sequence[Size], value: float) -> Value:
        """A constant whose elements are all the same; it takes no memory."""
        dtype = dtype_of(dtype)
        if dtype.is_float:
            return self._made(_c.lib.weft_splat, dtype, len(sizes), self.dims(sizes), float(value))
        bits = int(value) - 2**64 if int(value) >= 2**63 else int(value)
        return self._made(_c.lib.weft_splat_integer, dtype, len(sizes), self.dims(sizes), bits)

    # --- nodes

    def op(self, name: str, *operands: Value, results: int | None = None, dtype: Any = 0,
           sizes: Sequence[Size] | None = None, value_name: str | None = None, **attributes: Any) -> Any:
        """Appends a node and returns its result, or a tuple of them if there are several; with ``results``, the first
        so many. ``dtype`` and ``sizes`` state the type of ops that do not infer it (cast, reshape, bcast …).
        Attributes are numbers, lists, words and, of `if` and `loop`, bodies; one that is a Python word ends in _."""
        self._source = None
        made = [self._attribute(key.removesuffix("_"), value) for key, value in attributes.items()]
        op = _c.sized(_c.Op, op=name.encode(), name=value_name.encode() if value_name else None,
                      operand=_c.array_of(Val, (v.raw for v in operands)), operands=len(operands),
                      attribute=_c.array_of(_c.Attribute, made), attributes=len(made))
        if sizes is not None or dtype:
            if sizes is None or not dtype:
                sizes = operands[0].dims if sizes is None else sizes
                dtype = dtype or operands[0].dtype
            op.dtype, op.rank = dtype_of(dtype), len(sizes)
            op.extent = self.dims(sizes)
        bodies = [value for value in attributes.values() if isinstance(value, Graph)]
        out = (Val * max([_c.CUSTOM_MOST_RESULTS] + [_c.lib.weft_graph_returns(b.handle) for b in bodies]))()
        self.context.call(_c.lib.weft_append, self.handle, C.byref(op), out)
        raws = [Val(raw.id, raw.graph) for raw in itertools.takewhile(lambda raw: raw.id, out)]
        values = tuple(self.read(raw) for raw in raws[:results])
        return values[0] if len(values) == 1 else values

    def _attribute(self, key: str, value: Any) -> Any:
        a = _c.Attribute(name=key.encode())
        if isinstance(value, str):
            a.word = value.encode()
        elif isinstance(value, DType):
            a.word = str(value).encode()
        elif isinstance(value, Graph):
            a.graph = value.handle
        elif isinstance(value, (list, tuple, np.ndarray)):
            a.count = len(value)
            if key in REAL_LISTS:
                a.reals = _c.array_of(C.c_double, map(float, value))
            else:
                a.integers = self.dims(value)
        elif key in REALS:
            a.real = float(value)
        else:
            a.integer = int(value)
        return a

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name == "handle":
            raise AttributeError(name)
        return functools.partial(self.op, name.removesuffix("_"))

    def body(self, name: str) -> Graph:
        """A graph for the body of an `if` or `loop` of this one. It shares its symbols and sees none of its values."""
        handle = C.c_void_p()
        self.context.call(_c.lib.weft_graph_create_body, self.handle, name.encode(), C.byref(handle))
        return Graph(self.context, name, handle=handle, parent=self)

    def returns(self, values: Value | Sequence[Value], updated: Sequence[Value | None] | None = None) -> None:
        """Declares the results. ``updated[i]`` names the mutable input whose new value result i is, or None."""
        self._source = None
        values = [values] if isinstance(values, Value) else list(values)
        raws = _c.array_of(Val, (v.raw for v in values))
        if updated is not None and len(updated) != len(values):
            raise ValueError(f"returns: {len(values)} results, but `updated` has {len(updated)} elements")
        if updated is not None and any(v is not None for v in updated):
            old = _c.array_of(Val, (Val() if v is None else v.raw for v in updated))
            self.context.call(_c.lib.weft_return_mut, self.handle, raws, old, len(values))
        else:
            self.context.call(_c.lib.weft_return, self.handle, raws, len(values))

    # --- reading

    @property
    def inputs(self) -> tuple[Value, ...]:
        count = _c.lib.weft_graph_params(self.handle)
        return tuple(self.read(_c.lib.weft_graph_param(self.handle, i)) for i in range(count))

    @property
    def outputs(self) -> tuple[Value, ...]:
        count = _c.lib.weft_graph_returns(self.handle)
        return tuple(self.read(_c.lib.weft_graph_return(self.handle, i)) for i in range(count))

    def text(self) -> str:
        """The graph as text that parses back to the same graph."""
        return self.context.text(_c.lib.weft_print, self.handle)

    __str__ = text

    def __repr__(self) -> str:
        return f"<weft.Graph of {_c.lib.weft_graph_params(self.handle)} inputs, " \
               f"{_c.lib.weft_graph_returns(self.handle)} results>"

    def dot(self, **options: Any) -> str:
        """The graph for Graphviz; options as those of ``weft.dot``."""
        from .viz import dot
        return dot(self, **options)

    def _repr_svg_(self) -> str | None:
        from .viz import notebook_picture
        return notebook_picture(self)

    # --- rewriting

    def run_pass(self, name: str) -> bool:
        """Runs one pass by its name, "fold-batchnorm"; True: the graph changed."""
        self._source = None
        return bool(self.context.call(_c.lib.weft_run_pass, self.handle, name.encode(), None))

    def run_pipeline(self, *, only: str | None = None, skip: str | None = None, until: str | None = None,
                     rewrites: int = 0) -> bool:
        """Runs the default pipeline: all passes, or those that the options of ``weft.compile`` say."""
        self._source = None
        options = pipeline_options(only, skip, until, rewrites)
        return bool(self.context.call(_c.lib.weft_run_pipeline_with, self.handle, None, C.byref(options)))

    def validate(self) -> None:
        """Raises InvalidGraphError, with all findings, if a rule of the language is broken."""
        self.context.call(_c.lib.weft_validate, self.handle)

    # --- copies

    def clone(self) -> Graph:
        handle = C.c_void_p()
        self.context.call(_c.lib.weft_graph_clone, self.handle, C.byref(handle))
        return Graph(self.context, handle=handle)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the graph as text to a file, and the elements of large constants to `path`.bin beside it."""
        self.context.call(_c.lib.weft_save, self.handle, os.fsencode(path))

    def moved_to(self, context: Context) -> Graph:
        """A copy in another context. What was loaded is loaded again; what was built goes through files."""
        if self._source is not None:
            return self._source(context)
        with tempfile.TemporaryDirectory(prefix="weft-") as folder:
            path, handle = os.path.join(folder, "graph.weft"), C.c_void_p()
            self.save(path)
            context.call(_c.lib.weft_load, context.handle, os.fsencode(path), C.byref(handle))
        return Graph(context, handle=handle)

    # --- computing

    def evaluate(self, *arguments: object) -> Any:
        """The results by the reference evaluator: slow, in double or exact arithmetic, rounded at each value."""
        from .evaluator import evaluate
        return evaluate(self, arguments)

    def compile(self, flags: int = 0, **options: Any) -> Plan:
        """Makes a plan; options as those of ``weft.compile``."""
        from .plan import compile_graph
        return compile_graph(self, flags=flags, **options)


def pipeline_options(only: str | None, skip: str | None, until: str | None, rewrites: int) -> Any:
    """struct weft_pipeline_options; names of passes in a list are separated by commas."""
    named = {"only": only, "skip": skip, "until": until}
    encoded = {key: text.encode() for key, text in named.items() if text is not None}
    return _c.sized(_c.PipelineOptions, rewrites=rewrites, **encoded)
