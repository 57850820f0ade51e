# SPDX-License-Identifier: Apache-2.0
"""Which ATen ops torch opens into simpler ones before weft sees a graph.

The start is torch's core_aten_decompositions(). What has a lowering of its own stays whole, and gradients that have
none are opened where their pieces are all weft's. torch opens some ops whatever a table says (those with a Python
implementation for autograd, like upsample_bilinear2d and lstm).
"""

from __future__ import annotations

import functools

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

from .lower import TABLE

#: opened though they have a lowering: their pieces are what fuses best
OPEN_ANYWAY: tuple[str, ...] = ()

#: opened besides torch's core ones
OPENED = """addcdiv_ native_layer_norm_backward native_group_norm_backward _softmax_backward_data
    _log_softmax_backward_data embedding_dense_backward gelu_backward silu_backward mish_backward hardswish_backward
    hardsigmoid_backward hardtanh_backward elu_backward leaky_relu_backward nll_loss_backward nll_loss_forward
    nll_loss2d_backward nll_loss2d_forward threshold_backward tanh_backward sigmoid_backward native_batch_norm_backward
    batch_norm_backward log_sigmoid_backward softshrink_backward hardshrink_backward glu_backward _prelu_kernel_backward
    mse_loss_backward smooth_l1_loss_backward huber_loss_backward binary_cross_entropy binary_cross_entropy_backward
    l1_loss mse_loss smooth_l1_loss huber_loss soft_margin_loss soft_margin_loss_backward
    logit_backward unfold_backward trace diag_embed im2col_backward
    masked_select_backward diagonal_backward cudnn_batch_norm_backward _fused_rms_norm_backward
    nan_to_num norm_except_dim rrelu_with_noise_functional _weight_norm_interface
    _weight_norm_interface_backward native_dropout_backward index_add_ logaddexp_backward std_mean.correction
    dist p_norm cdist_backward_masked take_along_dim rot90 roll std var_mean _cdist_forward _euclidean_dist
    linalg_vector_norm_backward multi_margin_loss multilabel_margin_loss_forward block_diag
    pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle special_entr special_log_ndtr special_xlog1py
    special_erfcx special_bessel_j0 special_bessel_j1 special_spherical_bessel_j0 special_i0e special_i1 special_i1e
    special_zeta mvlgamma isin trapezoid nansum logspace linspace polar
    aminmax baddbmm bernoulli.p unbind count_nonzero
    _unsafe_masked_index _unsafe_masked_index_put_accumulate _chunk_cat split_with_sizes_copy
    reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward replication_pad1d_backward
    replication_pad2d_backward replication_pad3d_backward adaptive_max_pool2d adaptive_max_pool3d
    upsample_compute_output_size max_unpool2d max_unpool3d fractional_max_pool2d fractional_max_pool3d
    """.split()


@functools.cache
def decompositions() -> dict:
    """The table for AOTAutograd."""
    chosen = dict(core_aten_decompositions())
    packets = [getattr(torch.ops.aten, name.partition(".")[0], None) for name in OPENED]
    chosen.update(get_decompositions([p for p in packets if p is not None]))
    for target in TABLE:
        chosen.pop(target, None)
    return chosen
