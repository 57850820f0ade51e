# SPDX-License-Identifier: Apache-2.0
"""The public C interface of weft through ctypes: structures, prototypes and constants of include/weft/*.h.

Structures are called like the C ones, in one word without the prefix: weft_compile_options is CompileOptions. Members
that hold functions are plain pointers here; whoever sets one casts it and keeps it alive. tests/test_abi.py compares
all of it with the headers.

ctypes is for building, compiling and reading graphs; it lets go of the GIL during each call.
"""

from __future__ import annotations

import ctypes as C
import os
from pathlib import Path

from .errors import Error, error_of

MAX_RANK = 8
MAX_STORAGE = 16
CUSTOM_MOST_RESULTS = 64
PATTERN_OPERANDS, PATTERN_MAX, PATTERN_ONE_READER, PATTERN_CONSTANT = 4, 32, 1, 2

OK = 0
ERR_NOMEM, ERR_ARGUMENT, ERR_SYNTAX, ERR_INVALID, ERR_UNSUPPORTED, ERR_IO, ERR_BINDING, ERR_CUSTOM, ERR_CANCELLED = (
    range(-1, -10, -1))
F64, F32, BF16, F16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL, I4, U4, F8E4M3, F8E5M2 = range(1, 18)
NOTE, WARNING, ERROR = range(3)
EXECUTOR_CONCURRENT = 1
(COMPILE_NO_PASSES, COMPILE_REFERENCE, COMPILE_NO_WINOGRAD, COMPILE_SHARE_RESULTS, COMPILE_WINOGRAD_4,
 COMPILE_KEEP_CONSTANTS, COMPILE_NO_FUSE, COMPILE_NO_COMPILER, COMPILE_STORE) = (1 << i for i in range(9))
ALIGN_NEVER, ALIGN_PAYS, ALIGN_ALWAYS = range(3)
MEMORY_NONE, MEMORY_INPUT, MEMORY_OUTPUT, MEMORY_CONSTANT, MEMORY_ARENA = range(5)
CONSTANT_NONE, CONSTANT_STORED, CONSTANT_SPLAT, CONSTANT_RANDOM, CONSTANT_GIVEN_UP = range(5)
(CUSTOM_INTEGER, CUSTOM_REAL, CUSTOM_TEXT, CUSTOM_INTEGERS, CUSTOM_REALS, CUSTOM_TEXTS, CUSTOM_ARRAY) = range(1, 8)
CUSTOM_ABI = 1
PASS_BY_NAME, PASS_FIRST, PASS_OPENED, PASS_SIMPLIFIED, PASS_PLACED, PASS_LAST = range(6)
TARGET_OWN_ONLY = 1

_P, _S, _N = C.c_void_p, C.c_char_p, C.c_size_t
_i32, _u32, _i64, _u64, _real = C.c_int32, C.c_uint32, C.c_int64, C.c_uint64, C.c_double


def _struct(name: str, *fields: tuple, **options) -> type[C.Structure]:
    return type(name, (C.Structure,), {**options, "_fields_": list(fields), "__doc__": f"struct of {name}"})


# --- base.h, context.h

Tensor = _struct("Tensor", ("data", _P), ("dtype", _i32), ("rank", _i32), ("extent", _i64 * MAX_RANK),
                 ("stride", _i64 * MAX_RANK))
Allocator = _struct("Allocator", ("size", _N), ("user", _P), ("allocate", _P), ("release", _P))
Executor = _struct("Executor", ("size", _N), ("user", _P), ("flags", _u32), ("reserved", _u32), ("workers", _P),
                   ("run", _P))
CDiagnostic = _struct("CDiagnostic", ("severity", _i32), ("status", _i32), ("file", _S), ("line", _i32),
                      ("column", _i32), ("where", _S), ("message", _S))
ContextOptions = _struct(
    "ContextOptions", ("size", _N), ("allocator", C.POINTER(Allocator)), ("executor", C.POINTER(Executor)),
    ("diagnose", _P), ("diagnose_user", _P), ("cpu", _S), ("threads", _i32), ("reserved", _i32), ("prices", _S),
    ("packs", _S), ("packs_bytes", C.c_uint64))

# --- graph.h


class Val(C.Structure):
    """weft_val: a value of one graph"""

    _fields_ = [("id", _u32), ("graph", _u32)]


class Node(C.Structure):
    """weft_node: a node of one graph"""

    _fields_ = [("id", _u32), ("graph", _u32)]


class Dim(C.Structure):
    """weft_dim: an extent, a constant or an expression over the symbols of one graph"""

    _fields_ = [("bits", _i64)]


FixedInput = _struct("FixedInput", ("name", _S), ("tensor", C.POINTER(Tensor)))
KnownConstant = _struct("KnownConstant", ("id", _S), ("data", _P), ("bytes", _N), ("release", _P), ("user", _P))
LoadOptions = _struct("LoadOptions", ("size", _N), ("name", _S), ("folder", _S), ("fixed", C.POINTER(FixedInput)),
                      ("fixed_count", _N), ("release", _P), ("release_user", _P),
                      ("constants", C.POINTER(KnownConstant)), ("constant_count", _N))


class CustomValue(C.Structure):
    """struct weft_custom_value"""

    _fields_ = [("name", _S), ("kind", _i32), ("reserved", _i32), ("integer", _i64), ("real", _real), ("text", _S),
                ("integers", C.POINTER(_i64)), ("reals", C.POINTER(_real)), ("texts", C.POINTER(_S)),
                ("array", C.POINTER(Tensor)), ("count", _N)]


class _AttributeMore(C.Union):
    _fields_ = [("reserved", _P * 2), ("values", C.POINTER(CustomValue))]


Attribute = _struct("Attribute", ("name", _S), ("integer", _i64), ("real", _real), ("word", _S),
                    ("integers", C.POINTER(Dim)), ("reals", C.POINTER(_real)), ("count", _N), ("graph", _P),
                    ("more", _AttributeMore), _anonymous_=("more",))
CustomType = _struct("CustomType", ("dtype", _i32), ("rank", _i32), ("extent", Dim * MAX_RANK))
Op = _struct("Op", ("size", _N), ("op", _S), ("name", _S), ("operand", C.POINTER(Val)), ("operands", _N),
             ("attribute", C.POINTER(Attribute)), ("attributes", _N), ("dtype", _i32), ("rank", _i32),
             ("extent", C.POINTER(Dim)), ("result", C.POINTER(CustomType)), ("results", _N))

# --- custom.h

CustomTypes = _struct(
    "CustomTypes", ("size", _N), ("graph", _P), ("operand", C.POINTER(CustomType)), ("operands", _N),
    ("parameter", C.POINTER(_real)), ("parameters", _N), ("result", CustomType), ("message", _P),
    ("message_bytes", _N), ("more", C.POINTER(CustomType)), ("results", _N), ("value", C.POINTER(CustomValue)),
    ("values", _N))
CustomCall = _struct(
    "CustomCall", ("size", _N), ("where", _S), ("operand", C.POINTER(Tensor)), ("operands", _N),
    ("result", C.POINTER(Tensor)), ("parameter", C.POINTER(_real)), ("parameters", _N), ("message", _P),
    ("message_bytes", _N), ("results", _N), ("value", C.POINTER(CustomValue)), ("values", _N), ("part", _i32),
    ("parts", _i32), ("worker", _i32), ("workers", _i32), ("scratch", _P))
Demand = _struct("Demand", ("size", _N), ("along", _i32), ("align", _i32))
Custom = _struct(
    "Custom", ("size", _N), ("name", _S), ("user", _P), ("least_operands", _i32), ("most_operands", _i32), ("run", _P),
    ("type", _P), ("layout", _P), ("cost", _P), ("demand", _P), ("results", _i32), ("flags", _u32), ("domain", _S),
    ("op", _S), ("parts", _P), ("scratch", _P), ("axes", _P))
CustomHost = _struct("CustomHost", ("size", _N), ("context", _P), ("enroll", _P), ("extent", _P),
                     ("extent_combine", _P), ("value_of", _P))
CustomLibrary = _struct("CustomLibrary", ("abi", _i32), ("reserved", _i32), ("enter", _P))

# --- read.h, edit.h

NodeFacts = _struct("NodeFacts", ("size", _N), ("op", _S), ("kernel", _S), ("group", _S), ("operands", _N),
                    ("results", _N), ("in", _S), ("group_kernel", _S))
StorageAxis = _struct("StorageAxis", ("axis", _i32), ("reserved", _i32), ("div", _i64), ("mod", _i64),
                      ("stride", _i64))
ValueFacts = _struct(
    "ValueFacts", ("size", _N), ("name", _S), ("node", Node), ("dtype", _i32), ("rank", _i32),
    ("extent", Dim * MAX_RANK), ("hint", _i64 * MAX_RANK), ("decided", _i32), ("storage_axes", _i32),
    ("storage", StorageAxis * MAX_STORAGE), ("offset", _i64), ("uses", _N), ("constant", _i32))
Size = _struct("Size", ("symbol", _S), ("value", _i64))
Access = _struct("Access", ("size", _N), ("value", Val), ("along", Val), ("axes", _u32), ("align", _u32),
                 ("offset", _i64))
AccessWidth = _struct("AccessWidth", ("size", _N), ("width", _i64), ("inner", _i64))
Pattern = _struct("Pattern", ("op", _S), ("operand", _u32 * PATTERN_OPERANDS), ("flags", _u32))

# --- alternative.h, passes.h

Alternative = _struct("Alternative", ("size", _N), ("name", _S), ("op", _S), ("user", _P), ("fits", _P),
                      ("beside", _P), ("build", _P), ("cost_ns", _P))

PipelineOptions = _struct("PipelineOptions", ("size", _N), ("only", _S), ("skip", _S), ("until", _S),
                          ("rewrites", _i64))
Pass = _struct("Pass", ("size", _N), ("name", _S), ("user", _P), ("place", _i32), ("reserved", _i32), ("run", _P),
               ("op", _S), ("rewrite", _P))
Remark = _struct("Remark", ("size", _N), ("who", _S), ("where", _S), ("verdict", _S), ("reason", _S))

# --- target.h

KernelArray = _struct(
    "KernelArray", ("data", _P), ("dtype", _i32), ("rank", _i32), ("extent", _i64 * MAX_RANK),
    ("stride", _i64 * MAX_RANK), ("split", _i32), ("storage_axes", _i32), ("storage", StorageAxis * MAX_STORAGE),
    ("bytes", _i64))
KernelCall = _struct(
    "KernelCall", ("size", _N), ("graph", _P), ("node", Node), ("where", _S), ("operand", C.POINTER(KernelArray)),
    ("operands", _N), ("result", C.POINTER(KernelArray)), ("results", _N), ("part", _i32), ("parts", _i32),
    ("worker", _i32), ("workers", _i32), ("scratch", _P), ("sizes", C.POINTER(_i64)), ("message", _P),
    ("message_bytes", _N))
Kernel = _struct(
    "Kernel", ("size", _N), ("name", _S), ("op", _S), ("user", _P), ("fits", _P), ("layout", _P), ("cost", _P),
    ("demand", _P), ("run", _P), ("parts", _P), ("scratch", _P), ("in_place", _P))

# --- plan.h, run.h

InputAlignment = _struct("InputAlignment", ("input", _S), ("assume_aligned", _i32), ("reserved", _i32))
CompileOptions = _struct(
    "CompileOptions", ("size", _N), ("target", _P), ("flags", _u32), ("reserved", _u32), ("constant_bytes", _i64),
    ("assume_aligned", _i32), ("reserved2", _i32), ("input_alignment", C.POINTER(InputAlignment)),
    ("input_alignments", _N), ("pipeline", C.POINTER(PipelineOptions)))
Port = _struct("Port", ("size", _N), ("name", _S), ("dtype", _i32), ("rank", _i32), ("extent", _i64 * MAX_RANK),
               ("stride", _i64 * MAX_RANK), ("text", _S), ("is_mutable", _i32), ("updates", _i32),
               ("is_static", _i32), ("reserved", _i32))
PlanValue = _struct(
    "PlanValue", ("size", _N), ("name", _S), ("root", _S), ("memory", _i32), ("storage", _u32), ("port", _i32),
    ("copies", _i32), ("dtype", _i32), ("rank", _i32), ("extent", _i64 * MAX_RANK), ("stride", _i64 * MAX_RANK),
    ("offset", _i64))
PlanStep = _struct(
    "PlanStep", ("size", _N), ("kernel", _S), ("value", _S), ("group", _S), ("nodes", _i32), ("parts", _i32),
    ("own", _i32), ("node", Node), ("op", _S), ("operands", _i32), ("results", _i32), ("output", _i32))
PlanOperand = _struct(
    "PlanOperand", ("size", _N), ("value", _S), ("id", Val), ("memory", _i32), ("storage", _u32), ("port", _i32),
    ("reserved", _i32), ("offset", _i64), ("layout", _S), ("array", KernelArray))
PlanBlock = _struct("PlanBlock", ("size", _N), ("value", _S), ("storage", _u32), ("first", _i32), ("last", _i32),
                    ("offset", _i64), ("bytes", _i64))
Statistics = _struct(
    "Statistics", ("size", _N), ("arena_bytes", _i64), ("constant_bytes", _i64), ("kernels", _i32),
    ("relayouts", _i32), ("fallbacks", _i32), ("workers", _i32), ("fallback_ns", _i64), ("relayout_ns", _i64),
    ("total_ns", _i64), ("copied_bytes", _i64), ("inside", _i32), ("overwriting", _i32), ("updating", _i32),
    ("plain_ns", _i64), ("shared_bytes", _i64), ("staged_bytes", _i64), ("staged_inputs", _i32), ("reserved", _i32),
    ("mapped_bytes", _i64), ("static_bytes", _i64), ("static_packs", _i64))

# --- viz.h: a library of its own, _viz.py

DotOptions = _struct(
    "DotOptions", ("size", _N), ("focus", _S), ("radius", _i32), ("max_nodes", _i32), ("heat_name", C.POINTER(_S)),
    ("heat_ns", C.POINTER(_i64)), ("heats", _N), ("heat_note", _S), ("scopes", _i32), ("repeats", _i32),
    ("expand", C.POINTER(_S)), ("expands", _N), ("work_name", C.POINTER(_S)), ("work_bytes", C.POINTER(_i64)),
    ("works", _N))

DIAGNOSE = C.CFUNCTYPE(None, _P, C.POINTER(CDiagnostic))
RELEASE_CONSTANT = C.CFUNCTYPE(None, _P, _P)
RELEASE_BYTES = C.CFUNCTYPE(None, _P, _P, _N)
TIMED = C.CFUNCTYPE(None, _P, _S, _S, _i64)

_int, _bool = C.c_int, C.c_bool
#: result, arguments. A pointer to a structure or to memory is _P: ctypes takes byref(), arrays and addresses for it.
PROTOTYPES: dict[str, tuple] = {
    # base.h
    "weft_status_text": (_S, _int), "weft_version": (_S,), "weft_version_number": (_int,),
    "weft_dtype_name": (_S, _int), "weft_dtype_from_name": (_int, _S), "weft_dtype_bits": (C.c_uint, _int),
    # context.h
    "weft_open": (_int, _P, _P), "weft_close": (None, _P), "weft_last_error": (_S, _P),
    "weft_context_target": (_P, _P), "weft_free_text": (None, _P, _P),
    # graph.h
    "weft_load": (_int, _P, _S, _P), "weft_load_fixed": (_int, _P, _S, _P, _N, _P),
    "weft_load_memory": (_int, _P, _P, _N, _P, _P), "weft_parse": (_int, _P, _P, _N, _S, _P),
    "weft_graph_clone": (_int, _P, _P), "weft_graph_destroy": (None, _P), "weft_print": (_int, _P, _P),
    "weft_validate": (_int, _P), "weft_graph_create": (_int, _P, _S, _P), "weft_graph_create_body": (_int, _P, _S, _P),
    "weft_extent": (Dim, _i64), "weft_symbol": (_int, _P, _S, _i64, _i64, _i64, _P),
    "weft_extent_combine": (_int, _P, C.c_char, Dim, Dim, _P), "weft_param": (_int, _P, _S, _int, _int, _P, _P),
    "weft_param_mut": (_int, _P, _S, _int, _int, _P, _P), "weft_param_static": (_int, _P, _S, _int, _int, _P, _P),
    "weft_constant": (_int, _P, _int, _int, _P, _P, _P),
    "weft_constant_borrowed": (_int, _P, _int, _int, _P, _P, _P, _P, _P),
    "weft_splat": (_int, _P, _int, _int, _P, _real, _P), "weft_splat_integer": (_int, _P, _int, _int, _P, _i64, _P),
    "weft_append": (_int, _P, _P, _P), "weft_return": (_int, _P, _P, _N), "weft_return_mut": (_int, _P, _P, _P, _N),
    "weft_set_layout": (_int, _P, Val, _S), "weft_save": (_int, _P, _S),
    # read.h
    "weft_graph_params": (_N, _P), "weft_graph_param": (Val, _P, _N), "weft_graph_returns": (_N, _P),
    "weft_graph_return": (Val, _P, _N), "weft_next_node": (Node, _P, Node), "weft_node_read": (_int, _P, Node, _P),
    "weft_node_operand": (Val, _P, Node, _N), "weft_node_result": (Val, _P, Node, _N),
    "weft_node_attribute": (_int, _P, Node, _S, _P), "weft_value_read": (_int, _P, Val, _P),
    "weft_constant_read": (_int, _P, Val, _P), "weft_extent_text": (_int, _P, Dim, _P),
    "weft_extent_at": (_int, _P, Dim, _P, _N, _P), "weft_access": (_int, _P, _P, _P),
    # edit.h
    "weft_insert_before": (_int, _P, Node, _P, _P), "weft_insert_after": (_int, _P, Node, _P, _P),
    "weft_graph_replace": (_int, _P, Val, Val), "weft_graph_set_operand": (_int, _P, Node, _N, Val),
    "weft_graph_erase": (_int, _P, Node), "weft_match": (_int, _P, Node, _P, _N, _P),
    # alternative.h
    "weft_register_alternative": (_int, _P, _P),
    # passes.h
    "weft_run_pass": (_int, _P, _S, _P), "weft_run_pipeline": (_int, _P, _P),
    "weft_run_pipeline_with": (_int, _P, _P, _P), "weft_register_pass": (_int, _P, _P),
    "weft_remark_count": (_N, _P), "weft_remark_get": (_int, _P, _N, _P),
    # custom.h
    "weft_register": (_int, _P, _P), "weft_custom_value_of": (_P, _P, _N, _S),
    "weft_register_library": (_int, _P, _S),
    # target.h
    "weft_call_extent": (_int, _P, Dim, _P), "weft_target_create": (_int, _P, _P), "weft_target_destroy": (None, _P),
    "weft_target_add": (_int, _P, _P), "weft_target_restrict": (_int, _P, _u32),
    # plan.h
    "weft_compile": (_int, _P, _P, _P), "weft_plan_wait": (_int, _P), "weft_plan_stored": (_int, _P, _P, _P),
    "weft_plan_compiled": (_int, _P, _P, _P, _P),
    "weft_plan_destroy": (None, _P), "weft_plan_print": (_int, _P, _P), "weft_plan_graph": (_P, _P),
    "weft_plan_inputs": (_N, _P), "weft_plan_outputs": (_N, _P), "weft_plan_input": (_int, _P, _N, _P),
    "weft_plan_output": (_int, _P, _N, _P), "weft_plan_find_input": (_int, _P, _S, _P),
    "weft_plan_find_output": (_int, _P, _S, _P), "weft_plan_values": (_N, _P), "weft_plan_value": (_int, _P, _N, _P),
    "weft_plan_find": (_int, _P, _S, _P), "weft_plan_steps": (_N, _P), "weft_plan_step": (_int, _P, _N, _P),
    "weft_plan_step_operand": (_int, _P, _N, _N, _P), "weft_plan_step_result": (_int, _P, _N, _N, _P),
    "weft_plan_arena_bytes": (_i64, _P), "weft_plan_blocks": (_N, _P), "weft_plan_block": (_int, _P, _N, _P),
    "weft_plan_relayouts": (_N, _P),
    # run.h
    "weft_execution_create": (_int, _P, _P), "weft_execution_destroy": (None, _P),
    "weft_bind_input": (_int, _P, _N, _P), "weft_bind_output": (_int, _P, _N, _P),
    "weft_bind_input_named": (_int, _P, _S, _P), "weft_bind_output_named": (_int, _P, _S, _P),
    "weft_rebind_input": (_int, _P, _N, _P), "weft_rebind_output": (_int, _P, _N, _P),
    "weft_refresh": (_int, _P, _N), "weft_output_needed": (_int, _P, _N, _P),
    "weft_run": (_int, _P), "weft_cancel": (_int, _P), "weft_output": (_int, _P, _N, _P),
    "weft_execution_error": (_S, _P), "weft_execution_statistics": (_int, _P, _P), "weft_run_timed": (_int, _P, _P, _P),
    "weft_evaluate": (_int, _P, _P, _N, _P, _N), "weft_tensor_free": (None, _P, _P),
}
VIZ_PROTOTYPES: dict[str, tuple] = {"weft_dot": (_int, _P, _P, _P)}


def declare(library: C.CDLL, prototypes: dict[str, tuple]) -> None:
    """Gives the functions of a library their types; one that it lacks is an error that names the library."""
    for name, (result, *arguments) in prototypes.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{library._name} has no function {name}: it is older than this package") from None
        function.restype, function.argtypes = result, arguments


def find(stem: str) -> str:
    """Where a library of weft is: beside WEFT_LIBRARY, in the package's folder, or where the system looks."""
    chosen = os.environ.get("WEFT_LIBRARY")
    if chosen and stem == "weft":
        return chosen
    here = Path(__file__).parent
    folders = [Path(chosen).parent, Path(chosen).parent / "viz"] if chosen else [here, here / "lib"]
    for folder in folders:
        for name in (f"lib{stem}.so.1", f"lib{stem}.so"):
            if (folder / name).is_file():
                return str(folder / name)
    return f"lib{stem}.so.1"


def _load() -> C.CDLL:
    path = find("weft")
    try:
        library = C.CDLL(path)
    except OSError as reason:
        raise ImportError(f"libweft cannot be loaded: {reason} (WEFT_LIBRARY names another one)") from reason
    declare(library, PROTOTYPES)
    return library


lib = _load()


def check(status: int, message: bytes | str | None = None) -> int:
    """Raises the exception of a negative status; returns any other."""
    if status < 0:
        text = message.decode(errors="replace") if isinstance(message, bytes) else message
        raise error_of(status, text or lib.weft_status_text(status).decode())
    return status


def sized(kind: type[C.Structure], **members) -> C.Structure:
    """A structure that starts with its size."""
    return kind(size=C.sizeof(kind), **members)


def array_of(kind, items):
    """A C array of the items; of one element if there are none, so that its address is one."""
    items = list(items)
    return (kind * max(1, len(items)))(*items)


__all__ = ["Error", "check", "declare", "find", "lib", "sized", "array_of"]
