# SPDX-License-Identifier: Apache-2.0
"""One op of torch's test database, in one type and mode: how the backend's results compare with eager's."""

from __future__ import annotations

import functools
import math
import warnings

import torch
from torch.utils import _pytree as pytree

from weft.torch import reports
from weft.torch.backend import Graphs, Options
from weft.torch.cache import Cache
from weft.torch.origin import Origin
from weft.torch.sizes import hint_of
from weft.torch.table import decompositions

warnings.simplefilter("ignore")
torch.set_num_threads(1)

#: their values are drawn; weft draws others than eager
RANDOM = {"bernoulli", "normal", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
          "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "rand_like",
          "randn_like", "randint_like", "randint", "randn", "uniform", "exponential", "multinomial", "cauchy",
          "geometric", "log_normal", "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
          "nn.functional.multi_head_attention_forward", "pca_lowrank", "svd_lowrank"}
#: their values are whatever was in memory
EMPTY = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", "resize_",
         "resize_as_"}
#: of equal elements it is not said which comes first
TIES = {"sort", "argsort", "topk", "kthvalue"}
OPTIONS = Options(freeze=False)
NO_CACHE = Cache.of(False, 1)
#: shapes and strides of results as torch traced them; some of its formulas lay results otherwise than eager does, and
#: then a compiled graph has to follow the formula
TRACED: set[tuple] = set()


@functools.cache
def ops() -> dict:
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.name + (f".{op.variant_test_name}" if op.variant_test_name else ""): op for op in op_db}


def check(name: str, dtype_name: str, mode: str, most: int) -> dict:
    op, dtype = ops()[name], getattr(torch, dtype_name)
    supported = op.supported_dtypes("cpu")
    if dtype not in supported or mode == "backward" and not (
            op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")):
        return {"status": "unsupported"}
    try:
        torch.manual_seed(0)
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=mode == "backward"))
    except Exception as problem:
        return {"status": "eager-fails", "detail": str(problem)[:200]}
    if len(samples) > most:  # spread over all kinds of samples
        samples = [samples[i * (len(samples) - 1) // (most - 1)] for i in range(most)] if most > 1 else samples[:1]
    missing, answers = set(), []
    for i, sample in enumerate(samples):
        answer = check_sample(op, name, sample, mode)
        answers.append(answer["status"])
        if answer["status"] == "wrong":
            return {"status": "wrong", "detail": f"sample {i}: {answer['detail']}"[:600]}
        missing |= set(answer.get("ops", ()))
    for status in ("untraceable", "missing"):
        if status in answers:
            return {"status": status, "ops": sorted(missing), "of": len(answers),
                    "right": answers.count("right") + answers.count("random")}
    kinds = set(answers) - {"eager-fails"}
    return {"status": kinds.pop() if len(kinds) == 1 else "right" if kinds else "eager-fails"}


def check_sample(op, name: str, sample, mode: str) -> dict:
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors):
        values = list(leaves)
        for i, tensor in zip(places, tensors):
            values[i] = tensor
        first, args, kwargs = pytree.tree_unflatten(values, spec)
        made = op.op(first, *args, **kwargs)
        if sample.output_process_fn_grad is not None and mode == "backward":
            made = sample.output_process_fn_grad(made)
        return made

    tensors = [leaves[i] for i in places]
    try:
        want = evaluate(function, fresh(tensors), mode)
    except Exception as problem:
        return {"status": "eager-fails", "detail": str(problem)[:200]}
    reports.clear()
    TRACED.clear()
    try:
        got = evaluate(traced(function, mode), fresh(tensors), mode)
    except Exception as problem:
        kind = type(problem).__name__
        if any(r.whole for r in reports) and kind in ("RuntimeError", "BindingError"):
            return {"status": "wrong", "detail": f"{kind}: {problem}"}
        text = (str(problem).strip().splitlines() or [""])[0]
        return {"status": "untraceable", "ops": [f"trace: {kind}: {text[:80]}"]}
    if op.name in TIES and len(want) > len(tensors):
        k = 0 if op.name == "argsort" else 1  # which result is the places
        got, want = ([by_place(op.name, sample, t) if i == k else t for i, t in enumerate(made)]
                     for made in (got, want))
    random = name in RANDOM or op.name in RANDOM or bool(sample.kwargs.get("dropout_p"))
    difference = compare(got, want, values=not random and op.name not in EMPTY)
    if difference and "numbers differ" in difference and nearer(function, tensors, got, want, mode):
        difference = None
    if difference and not agrees_without_weft(function, tensors, want, mode):
        return {"status": "untraceable", "ops": ["trace: differs from eager without weft too"]}
    if difference:
        return {"status": "wrong", "detail": difference}
    eager = {f"{o} ({r.reasons[o]})" if r.reasons.get(o, "no lowering") != "no lowering" else o
             for r in reports for o in r.eager if o in r.reasons}
    if eager:
        return {"status": "missing", "ops": sorted(eager)}
    return {"status": "random" if random else "right"}


def by_place(name: str, sample, made: torch.Tensor) -> torch.Tensor:
    """Of equal elements any may come first: places are compared by what stands there."""
    first = 1 if name in ("topk", "kthvalue") else 0
    axis = sample.kwargs.get("dim", sample.args[first] if len(sample.args) > first else -1)
    if made.dtype != torch.int64 or sample.input.dim() == 0 or isinstance(axis, bool):
        return made
    if made.dim() < sample.input.dim():
        made = made.unsqueeze(axis)
    return sample.input.detach().gather(axis, made) if made.shape[axis] <= sample.input.shape[axis] else made


class Rounding(torch.utils._python_dispatch.TorchDispatchMode):
    """Each op's numbers are moved by the last bit that a type has, up or down."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.eps = torch.finfo(dtype).eps

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        def moved(t):
            if not t.dtype.is_floating_point:
                return t
            return t * (1 + self.eps * torch.randint(-1, 2, t.shape))

        made = op(*args, **(kwargs or {}))
        return made if op.is_view or op._schema.is_mutable else pytree.tree_map_only(torch.Tensor, moved, made)


def nearer(function, tensors: list[torch.Tensor], got: list[torch.Tensor], want: list[torch.Tensor], mode: str) -> bool:
    """Is what the backend gives about as near to f64 as what eager gives, or as one rounding an op makes of it? Eager
    rounds at each op, plans do not."""
    def doubled(t):
        wide = t.detach().double() if t.dtype.is_floating_point else t.detach().clone()
        return wide.requires_grad_(t.requires_grad)

    try:
        truth = evaluate(function, [doubled(t) for t in tensors], mode)
        with Rounding(torch.float32):
            rounded = evaluate(function, [doubled(t) for t in tensors], mode)
    except Exception:
        return False
    if len(truth) != len(want):
        return False
    for g, w, t, r in zip(got, want, truth, rounded):
        if not w.dtype.is_floating_point or not w.numel():
            continue
        if t.shape != w.shape or not torch.equal(torch.isfinite(g), torch.isfinite(w)):
            return False
        finite = torch.isfinite(t) & torch.isfinite(w)
        ours, theirs, noise = ((v.double() - t)[finite].abs() for v in (g, w, r))
        if ours.numel():
            rounding = torch.finfo(w.dtype).eps * float(t[finite].abs().max())
            if float(ours.max()) > 2 * max(float(theirs.max()), float(noise.max())) + rounding:
                return False
    return True


def fresh(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Copies that lie as the originals do."""
    made = []
    for t in tensors:
        copy = t.detach()
        if t.layout is torch.strided and not t.is_quantized and not t.is_conj() and not t.is_neg():
            whole = torch.as_strided(copy, (copy.untyped_storage().nbytes() // max(1, copy.element_size()),), (1,), 0)
            copy = torch.as_strided(whole.clone(), t.shape, t.stride(), t.storage_offset())
        else:
            copy = copy.clone()
        made.append(copy.requires_grad_(t.requires_grad))
    return made


def agrees_without_weft(function, tensors: list[torch.Tensor], want: list[torch.Tensor], mode: str) -> bool:
    """Does AOTAutograd's graph, run by torch itself, give what eager gives?"""
    from functorch.compile import make_boxed_func
    from torch._functorch.aot_autograd import aot_function

    run = aot_function(function, fw_compiler=lambda gm, _: make_boxed_func(gm.forward), decompositions=decompositions(),
                       keep_inference_input_mutations=True, dynamic=mode == "dynamic")
    return compare(evaluate(run, fresh(tensors), mode), want, values=True) is None


def traced(function, mode: str):
    from torch._functorch.aot_autograd import aot_function
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    def compiler(kind):
        def compile_graph(gm, _):
            for n in gm.graph.find_nodes(op="output")[0].args[0]:
                value = n.meta.get("val") if isinstance(n, torch.fx.Node) else None
                if isinstance(value, torch.Tensor):
                    TRACED.add((tuple(map(hint_of, value.shape)), tuple(map(hint_of, value.stride()))))
            with torch.utils._python_dispatch._disable_current_modes():
                return Graphs(None, gm, kind, OPTIONS, NO_CACHE, Origin()).compile()

        return compile_graph

    return aot_function(function, fw_compiler=compiler("forward"), bw_compiler=compiler("backward"),
                        inference_compiler=compiler("inference"), decompositions=decompositions(),
                        partition_fn=min_cut_rematerialization_partition, keep_inference_input_mutations=True,
                        dynamic=mode == "dynamic")


def evaluate(function, tensors: list[torch.Tensor], mode: str) -> list[torch.Tensor]:
    """Results, then the tensors that were given (they may have been written to), then gradients of them."""
    torch.manual_seed(0)
    if mode != "backward":
        with torch.no_grad():
            made = outputs(function(*tensors))
        return made + tensors
    made = outputs(function(*tensors))
    roots = [t for t in made if t.requires_grad]
    given = [t for t in tensors if t.requires_grad]
    if not roots:
        return [t.detach() for t in made]
    torch.manual_seed(1)
    seeds = [torch.randn(t.shape, dtype=t.dtype) for t in roots]  # the same whatever the strides
    grads = torch.autograd.grad(roots, given, seeds, allow_unused=True)
    return [t.detach() for t in made] + [g for g in grads if g is not None]


def outputs(made) -> list[torch.Tensor]:
    return [t for t in pytree.tree_leaves(made) if isinstance(t, torch.Tensor)]


def compare(got: list[torch.Tensor], want: list[torch.Tensor], values: bool) -> str | None:
    """What differs, or None."""
    if len(got) != len(want):
        return f"{len(got)} results instead of {len(want)}"
    for k, (g, w) in enumerate(zip(got, want)):
        if g.dtype != w.dtype or g.shape != w.shape:
            return f"result {k}: {g.dtype} {tuple(g.shape)} instead of {w.dtype} {tuple(w.shape)}"
        if g.layout is not torch.strided:
            continue
        strides = [(a, b) for n, a, b in zip(w.shape, g.stride(), w.stride()) if n > 1 and a != b]
        if strides and w.numel() and (tuple(g.shape), g.stride()) not in TRACED:
            return f"result {k}: strides {g.stride()} instead of {w.stride()}"
        if values and w.numel():
            far = distance(g, w)
            if far:
                return f"result {k}: {far}"
    return None


def distance(g: torch.Tensor, w: torch.Tensor) -> str | None:
    if w.dtype.is_complex:
        return distance(torch.view_as_real(g.resolve_conj()), torch.view_as_real(w.resolve_conj()))
    if not w.dtype.is_floating_point:
        wrong = int((g != w).sum())
        return f"{wrong} of {w.numel()} integers differ" if wrong else None
    relative = {torch.float64: 1e-6, torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 4e-3}[w.dtype]
    g, w = g.double(), w.double()
    finite = torch.isfinite(w)
    top = float(w[finite].abs().max()) if finite.any() else 0.0
    close = torch.isclose(g, w, rtol=relative, atol=relative * min(max(top, 0.1), 1e6) * 0.1, equal_nan=True)
    if bool(close.all()):
        return None
    at = int((~close).flatten().nonzero()[0])
    return (f"{int((~close).sum())} of {w.numel()} numbers differ: {float(g.flatten()[at]):.6g} instead of "
            f"{float(w.flatten()[at]):.6g} (largest {top if math.isfinite(top) else 'inf':.3g})")
