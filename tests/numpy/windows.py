# SPDX-License-Identifier: Apache-2.0
"""Cases of contractions, windows, what reads between elements, norms, attention, quantised types. Where numpy has no
such function torch computes what is wanted, in double; without it those cases are left out, and compare.py says so."""
import numpy as np

from harness import DTYPES, FLOATS, Case, cast, make, tame, wide

try:
    import torch
    from torch.nn import functional as F
except ImportError:
    torch = None

NEAR = {"f64": 1e-10, "f32": 1e-5, "f16": 2e-3, "bf16": 2e-2}


def t(array):
    return torch.from_numpy(np.ascontiguousarray(wide(array)))


def floats(line, dtype, operands, wanted):
    """A case whose result is a sum of products: rounded once, so it may be off by a unit of its largest terms."""
    wanted = wanted.numpy() if torch and isinstance(wanted, torch.Tensor) else wanted
    return Case(line, operands, cast(wanted, dtype), rtol=NEAR[dtype] / 4, atol=1e-5 if dtype != "f64" else 1e-10)


def conv(x, w, stride, pad, dilation, groups):
    """Convolution over two axes as a sum over taps of shifted slices."""
    o, per_group, kh, kw = w.shape
    x = np.pad(wide(x), ((0, 0), (0, 0), (pad[0], pad[2]), (pad[1], pad[3])))
    oh = (x.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (x.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    y = np.zeros((x.shape[0], o, oh, ow), x.dtype)
    for g in range(groups):
        outs = slice(g * o // groups, (g + 1) * o // groups)
        for i in range(kh):
            for j in range(kw):
                part = x[:, g * per_group:(g + 1) * per_group, i * dilation[0]:, j * dilation[1]:]
                part = part[:, :, :oh * stride[0]:stride[0], :ow * stride[1]:stride[1]][:, :, :oh, :ow]
                y[:, outs] += np.einsum("nchw,oc->nohw", part, wide(w)[outs, :, i, j])
    return y


def products(rng):
    for d in FLOATS + ("i64", "i32", "u8"):
        p, q = tame(rng, d, 2, 3, 4), tame(rng, d, 2, 4, 5)
        exact = wide(p) @ wide(q)
        turned = tuple(v.swapaxes(1, 2) for v in (p, q))
        for line, operands in (("matmul %a, %b", (p, q)), ("matmul %a, %b trans_a=1 trans_b=1", turned)):
            if d in FLOATS:
                yield floats(line, d, operands, exact)
            else:
                yield Case(line, operands, exact)
        yield floats("matmul %a, %b", "f32", (tame(rng, "f32", 2, 0), tame(rng, "f32", 0, 3)), np.zeros((2, 3)))
        for _ in range(4):
            groups = int(rng.integers(1, 3))
            stride, dilation = rng.integers(1, 4, 2), rng.integers(1, 3, 2)
            pad, taps = rng.integers(0, 3, 4), rng.integers(1, 4, 2)
            image, weight = tame(rng, d, 2, 2 * groups, *rng.integers(5, 9, 2)), tame(rng, d, 3 * groups, 2, *taps)
            attrs = " ".join(f"{k}=[{' '.join(map(str, v))}]" for k, v in
                             (("stride", stride), ("pad", pad), ("dilation", dilation)))
            line, wanted = f"conv %a, %b {attrs} groups={groups}", conv(image, weight, stride, pad, dilation, groups)
            yield floats(line, d, (image, weight), wanted) if d in FLOATS else Case(line, (image, weight), wanted)


def norms(rng):
    for d in FLOATS:
        a, s, b = tame(rng, d, 2, 4, 6), tame(rng, d, 6), tame(rng, d, 6)
        x, scale, bias = wide(a), wide(s), wide(b)
        centred = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        yield floats("layer_norm %a, %b, %c axis=2", d, (a, s, b), centred * scale + bias)
        yield floats("rms_norm %a, %b axis=2", d, (a, s), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale)
        grouped = x.reshape(2, 2, 12)
        grouped = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)
        yield floats("group_norm %a groups=2", d, (a,), grouped.reshape(2, 4, 6))
        mean, spread, c = tame(rng, d, 4), tame(rng, d, 4, low=0.5, high=2), tame(rng, d, 4)
        column = [wide(v)[:, None] for v in (c, c, mean, spread)]
        wanted = (x - column[2]) / np.sqrt(column[3] + 1e-5) * column[0] + column[1]
        yield floats("batch_norm %a, %b, %b, %c, %d", d, (a, c, mean, spread), wanted)
        square = tame(rng, d, 3, 4, 4)
        yield floats("det %a", d, (square,), np.linalg.det(wide(square)))
        signal = tame(rng, d, 2, 6, 1)
        spectrum = np.fft.fft(wide(signal)[..., 0], 8, axis=1)
        yield floats("dft %a axis=1 length=8", d, (signal,), np.stack([spectrum.real, spectrum.imag], -1))
        half = spectrum[:, :5]
        yield floats("dft %a axis=1 length=8 onesided=1", d, (signal,), np.stack([half.real, half.imag], -1))
        pairs = tame(rng, d, 2, 5, 2)
        back = np.fft.ifft(wide(pairs)[..., 0] + 1j * wide(pairs)[..., 1], axis=1)
        yield floats("dft %a axis=1 length=5 inverse=1", d, (pairs,), np.stack([back.real, back.imag], -1))


def quantised(rng):
    """x / scale is rounded to f32 first; ties go to even; what lies outside is the nearest end."""
    for d in FLOATS:
        a, scale = make(rng, d, 4, 6), tame(rng, d, 4, 6, low=0.25, high=2)
        x = wide(a) / wide(scale)
        x = x if d == "f64" else x.astype(np.float32).astype(np.float64)
        for q in ("i8", "u8", "i16", "u16"):
            info, zero = np.iinfo(DTYPES[q]), tame(rng, q, 4, 6, low=0, high=9)
            wanted = np.clip(np.rint(x) + zero, info.min, info.max)
            wanted = np.where(np.isnan(x), 0, wanted)
            yield Case("quantize %a, %b, %c", (a, scale, zero), wanted.astype(DTYPES[q]))
            whole = make(rng, q, 4, 6)
            wanted = (whole.astype(np.float64) - zero) * wide(scale)
            yield Case("dequantize %a, %b, %c", (whole, scale, zero), cast(wanted, d))
            yield Case("dequantize %a, %b", (whole, scale), cast(whole.astype(np.float64) * wide(scale), d))


def pools(rng):
    for d in FLOATS:
        a = tame(rng, d, 2, 3, 7, 8)
        x, same = t(a), "kernel=[3 2] stride=[2 1] pad=[1 0 1 0]"
        most, places = F.max_pool2d(x, (3, 2), (2, 1), (1, 0), return_indices=True)
        plane = np.arange(6).reshape(2, 3, 1, 1) * 56
        yield floats(f"max_pool %a {same}", d, (a,), most)
        yield Case(f"max_pool_index %a {same}", (a,), (cast(most.numpy(), d), places.numpy() + plane))
        yield Case(f"max_pool_index %a {same} in_plane=1", (a,), (cast(most.numpy(), d), places.numpy()))
        back, flat = np.zeros((2, 3, 56)), places.flatten(2).numpy()
        np.add.at(back, (*np.indices(flat.shape)[:2], flat), most.flatten(2).numpy())
        yield floats("max_pool_grad %a, %b", d, (cast(most.numpy(), d), places.numpy()), back.reshape(2, 3, 7, 8))
        yield floats(f"mean_pool %a {same}", d, (a,), F.avg_pool2d(x, (3, 2), (2, 1), (1, 0), count_include_pad=False))
        yield floats(f"mean_pool %a {same} count_pad=1", d, (a,), F.avg_pool2d(x, (3, 2), (2, 1), (1, 0)))
        wanted = F.max_pool2d(x, (2, 3), 3, ceil_mode=True)
        yield floats("max_pool %a kernel=[2 3] stride=[3 3] ceil=1", d, (a,), wanted)
        yield floats("norm_pool %a kernel=[2 2] order=2", d, (a,), F.lp_pool2d(x.abs(), 2, 2, 1))
        values, kept = F.max_pool2d(x, 2, 2, return_indices=True)
        whole = F.max_unpool2d(values, kept, 2, 2, output_size=(7, 8))
        yield floats("unpool %a, %b", d, (cast(values.numpy(), d), kept.numpy() + plane), whole)


def between(rng):
    for d in FLOATS:
        a = tame(rng, d, 2, 3, 5, 6)
        x = t(a)
        for form, mode in (("linear", "bilinear"), ("cubic", "bicubic")):
            for size in ((10, 9), (3, 4)):
                for corners in (0, 1):
                    wanted = F.interpolate(x, size=size, mode=mode, align_corners=bool(corners))
                    word = "align_corners" if corners else "half_pixel"
                    yield floats(f"resize %a form={form} coordinates={word}", d, (a,), wanted)
        yield floats("resize %a coordinates=asymmetric nearest=floor", d, (a,), F.interpolate(x, size=(10, 12)))
        yield floats("resize %a form=linear antialias=1 exclude=1", d, (a,),
                     F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True))
        grid = tame(rng, d, 2, 4, 3, 2, low=-1.2, high=1.2)
        inside = cast(np.clip(wide(grid), -1, 1), d)  # outside, ONNX moves a point to the edge and torch only its taps
        for form, mode in (("linear", "bilinear"), ("nearest", "nearest"), ("cubic", "bicubic")):
            for border, padding in (("zeros", "zeros"), ("edge", "border"), ("reflect", "reflection")):
                for corners in (0, 1):
                    points = inside if form == "cubic" and border == "edge" else grid
                    wanted = F.grid_sample(x, t(points), mode, padding, bool(corners))
                    yield floats(f"grid_sample %a, %b form={form} border={border} corners={corners}", d, (a, points),
                                 wanted)
        columns = tame(rng, d, 2, 3 * 6, 4 * 5)
        yield floats("col2im %a kernel=[2 3]", d, (columns,), F.fold(t(columns), (5, 7), (2, 3)))


def composed(rng):
    for d in FLOATS:
        x, w = tame(rng, d, 2, 4, 5, 3), tame(rng, d, 4, 3, 3, 2)
        for stride, pad, out, dilation, groups in ((1, 0, 0, 1, 1), (2, 1, 1, 1, 2), (3, 0, 2, 2, 4)):
            wanted = F.conv_transpose2d(t(x), t(w), None, stride, pad, out, groups, dilation)
            line = (f"conv_transpose %a, %b stride=[{stride} {stride}] pad=[{pad} {pad} {pad} {pad}] "
                    f"out_pad=[{out} {out}] dilation=[{dilation} {dilation}] groups={groups}")
            yield floats(line, d, (x, w), wanted)
        for stride, pad, dilation, groups in ((1, 1, 1, 1), (2, 1, 1, 2), (2, 0, 2, 4)):
            y = F.conv2d(t(x), torch.zeros(4, 4 // groups, 2, 2, dtype=t(x).dtype), None, stride, pad, dilation, groups)
            dy = tame(rng, d, *y.shape)
            wanted = torch.nn.grad.conv2d_weight(t(x), (4, 4 // groups, 2, 2), t(dy), stride, pad, dilation, groups)
            line = (f"conv_grad_weight %a, %b kernel=[2 2] stride=[{stride} {stride}] pad=[{pad} {pad} {pad} {pad}] "
                    f"dilation=[{dilation} {dilation}] groups={groups}")
            yield floats(line, d, (x, dy), wanted)
        q, k, v = tame(rng, d, 2, 4, 3, 8), tame(rng, d, 2, 2, 5, 8), tame(rng, d, 2, 2, 5, 6)
        wanted = F.scaled_dot_product_attention(t(q), t(k), t(v), scale=0.25, enable_gqa=True)
        yield floats("attention %a, %b, %c factor=0.25", d, (q, k, v), wanted)
        wanted = F.scaled_dot_product_attention(t(q), t(k), t(v), scale=0.25, enable_gqa=True, is_causal=True)
        yield floats("attention %a, %b, %c factor=0.25 causal=1", d, (q, k, v), wanted)
        mask = tame(rng, d, 2, 4, 3, 5)
        mask[..., 0] = -np.inf
        wanted = F.scaled_dot_product_attention(t(q), t(k), t(v), t(mask), scale=0.25, enable_gqa=True)
        yield floats("attention %a, %b, %c, %d factor=0.25", d, (q, k, v, mask), wanted)
        yield from attention_for_training(rng, d, q, k, v, mask)


def attention_for_training(rng, d, *operands):
    """Logarithms of sums, and gradients by torch's derivatives of the formula."""
    q, k, v, mask = (t(x).double() for x in operands)
    for x in (q, k, v):
        x.requires_grad_()
    k2, v2 = (x.repeat_interleave(2, 1) for x in (k, v))
    scores = torch.tanh(q @ k2.transpose(-1, -2) * 0.25 / 3) * 3 + mask
    y, sums = scores.softmax(-1) @ v2, scores.logsumexp(-1)
    sums_type = "f32" if d in ("f16", "bf16") else d
    rtol, atol = NEAR[d] / 4, 1e-10 if d == "f64" else 4 * NEAR[d]
    made = cast(y.detach().numpy(), d), cast(sums.detach().numpy(), sums_type)
    yield Case("attention_sums %a, %b, %c, %d factor=0.25 softcap=3", operands, made, rtol=rtol, atol=atol)
    dy = tame(rng, d, *y.shape)
    y.backward(t(dy).double())
    yield Case("attention_grad %a, %b, %c, %d, %e, %f, %g factor=0.25 softcap=3",
               (dy, *operands[:3], *made, operands[3]), tuple(cast(x.grad.numpy(), d) for x in (q, k, v)), rtol=rtol,
               atol=atol)


NEED_TORCH = ("max_pool", "max_pool_index", "max_pool_grad", "mean_pool", "norm_pool", "unpool", "resize",
              "grid_sample", "col2im", "conv_transpose", "conv_grad_weight", "attention", "attention_sums",
              "attention_grad")


def cases(rng):
    for group in (products, norms, quantised) + ((pools, between, composed) if torch else ()):
        yield from group(rng)
