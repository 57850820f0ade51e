#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Architectures of Hugging Face transformers, with few layers and random weights: does weft run them, how right, how
fast?

    python3 bench/architectures.py [--weft build/weft] [--folder out/architectures] [--rounds 3] [--both] [--more]
                                   [NAME…]

--more: the models of more_architectures.py instead. A NAME may be of either file.

Each model is built from its configuration class (nothing is downloaded), exported by torch.onnx (dynamo, and the older
exporter where that fails; --both: by both), and kept in FOLDER/NAME with its inputs and PyTorch's outputs. Then
`weft bench --json` and an onnxruntime process run it in turns, as in beside_onnxruntime.py. The table has the largest
error beside PyTorch, relative to the largest reference value, and for weft the share of the time in the reference
evaluator (fallback), in plain kernels (`weft run --kernels` lists them) and in changes of layout. Needs torch,
transformers, onnx, onnxscript and onnxruntime.
"""
import argparse
import json
import logging
import math
import os
import statistics
import subprocess
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEED = 7
OPSET = 18


# --- models -----------------------------------------------------------------------------------------------------------

def numbers(*shape):
    import torch
    return torch.randn(*shape, generator=torch.Generator().manual_seed(SEED))


def tokens(batch, length, words):
    import torch
    return torch.randint(3, words, (batch, length), generator=torch.Generator().manual_seed(SEED))


def wrap(model, names, field, **fixed):
    """A module of positional inputs with one tensor, or a few, as its result."""
    import torch

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *inputs):
            got = self.model(**dict(zip(names, inputs)), **fixed)
            fields = [field] if isinstance(field, str) else field
            got = [getattr(got, name) for name in fields]
            return got[0] if len(got) == 1 else tuple(got)
    return Wrapped()


def seeded(model):
    """Weights that keep activations of the order of 1, statistics of batch norms that are none of the identity's."""
    import torch
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            if p.ndim >= 2:
                p.copy_(noise / math.sqrt(max(p[0].numel(), 1)))
            elif name.endswith("bias"):
                p.copy_(noise * 0.1)
            elif any(word in name for word in ("A_log", "dt_", "time_", ".D")):
                continue # recurrences are stable as they are initialised
            else:
                p.copy_(1 + 0.1 * noise)
        for name, b in model.named_buffers():
            if name.endswith("running_var"):
                b.copy_(0.5 + torch.rand(b.shape, generator=generator))
            elif name.endswith("running_mean"):
                b.copy_(0.1 * torch.randn(b.shape, generator=generator))
    return model.eval()


def text(name, kind="Model", field="last_hidden_state", length=96, mask=True, **config):
    """An encoder or decoder of tokens."""
    def build():
        import torch
        import transformers
        settings = getattr(transformers, f"{name}Config")(**config)
        settings.use_cache = False
        model = getattr(transformers, f"{name}{kind}")(settings)
        ids = tokens(1, length, min(settings.vocab_size, 900))
        inputs = (ids, torch.ones_like(ids)) if mask else (ids,)
        names = ("input_ids", "attention_mask")[:len(inputs)]
        return wrap(model, names, field), inputs
    return build


def picture(name, kind="Model", field="last_hidden_state", size=64, channels=3, **config):
    def build():
        import transformers
        model = getattr(transformers, f"{name}{kind}")(getattr(transformers, f"{name}Config")(**config))
        return wrap(model, ("pixel_values",), field), (numbers(1, channels, size, size),)
    return build


def whisper():
    import transformers as tf
    config = tf.WhisperConfig(vocab_size=1000, d_model=64, encoder_layers=2, decoder_layers=2,
                              encoder_attention_heads=4,
                              decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, num_mel_bins=40,
                              max_source_positions=100, max_target_positions=64, use_cache=False, pad_token_id=0,
                              bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    return wrap(tf.WhisperModel(config), ("input_features", "decoder_input_ids"), "last_hidden_state"), \
        (numbers(1, 40, 200), tokens(1, 12, 900))


def wav2vec2():
    import transformers as tf
    config = tf.Wav2Vec2Config(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                               conv_dim=(32, 32, 32, 32), conv_stride=(5, 2, 2, 2), conv_kernel=(10, 3, 3, 2),
                               num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)
    return wrap(tf.Wav2Vec2Model(config), ("input_values",), "last_hidden_state"), (numbers(1, 8000),)


def clip():
    import transformers as tf
    config = tf.CLIPConfig(
        text_config={"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
                     "vocab_size": 1000, "max_position_embeddings": 24, "eos_token_id": 2, "bos_token_id": 1},
        vision_config={"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
                       "image_size": 64, "patch_size": 16}, projection_dim=32)
    return wrap(tf.CLIPModel(config), ("input_ids", "pixel_values"), ("logits_per_image", "text_embeds")), \
        (tokens(2, 16, 900), numbers(2, 3, 64, 64))


def detr():
    import transformers as tf
    backbone = tf.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1],
                               out_features=["stage4"])
    config = tf.DetrConfig(use_timm_backbone=False, backbone_config=backbone, d_model=64, encoder_layers=2,
                           decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128,
                           decoder_ffn_dim=128, num_queries=20, num_labels=10, use_pretrained_backbone=False,
                           backbone=None)
    return wrap(tf.DetrForObjectDetection(config), ("pixel_values",),
                ("logits", "pred_boxes")), (numbers(1, 3, 128, 160),)


def pix2struct():
    import transformers as tf
    config = tf.Pix2StructVisionConfig(hidden_size=64, patch_embed_hidden_size=48, d_ff=128, d_kv=16,
                                       num_hidden_layers=2,
                                       num_attention_heads=4, seq_len=64)
    import torch
    patches = torch.cat([torch.arange(1, 41).reshape(1, 40, 1) % 8 + 1.0,
                         torch.arange(1, 41).reshape(1, 40, 1) % 5 + 1.0,
                         numbers(1, 40, 48)], -1)
    config.patch_embed_hidden_size = 48
    return wrap(tf.Pix2StructVisionModel(config), ("flattened_patches",), "last_hidden_state"), (patches,)


def bart():
    import transformers as tf
    config = tf.BartConfig(vocab_size=1000, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                           decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
                           max_position_embeddings=128,
                           use_cache=False)
    return wrap(tf.BartModel(config), ("input_ids", "decoder_input_ids"), "last_hidden_state"), \
        (tokens(1, 64, 900), tokens(1, 16, 900))


def sam_vision():
    import transformers as tf
    config = tf.SamVisionConfig(hidden_size=64, output_channels=32, num_hidden_layers=2, num_attention_heads=4,
                                image_size=128, patch_size=16, window_size=4, global_attn_indexes=[1], mlp_dim=128)
    return wrap(tf.SamVisionModel(config), ("pixel_values",), "last_hidden_state"), (numbers(1, 3, 128, 128),)


SMALL = {"vocab_size": 1000, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 256}
GROUPED = {**SMALL, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
VISION = {"hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 192,
          "image_size": 96,
          "patch_size": 16}

MODELS = {
    "swin": picture("Swin", size=96, image_size=96, patch_size=4, embed_dim=32, depths=[2, 2], num_heads=[2, 4],
                    window_size=6),
    "swinv2": picture("Swinv2", size=64, image_size=64, patch_size=4, embed_dim=32, depths=[2, 2], num_heads=[2, 4],
                      window_size=4),
    "deit": picture("DeiT", size=96, **VISION),
    "beit": picture("Beit", size=96, use_relative_position_bias=True, **VISION),
    "segformer": picture("Segformer", "ForSemanticSegmentation", "logits", size=128, depths=[1, 1, 1, 1],
                         hidden_sizes=[16, 32, 48, 64], num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=64,
                         num_labels=10),
    "mobilevit": picture("MobileViT", size=96, image_size=96, hidden_sizes=[48, 64, 80],
                         neck_hidden_sizes=[8, 16, 24, 32, 40, 48, 64], num_attention_heads=4),
    "poolformer": picture("PoolFormer", size=96, depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 48, 64]),
    "convnextv2": picture("ConvNextV2", size=96, depths=[1, 1, 2, 1], hidden_sizes=[16, 32, 48, 64]),
    "dinov2": picture("Dinov2", size=98, hidden_size=96, num_hidden_layers=2, num_attention_heads=4, image_size=98,
                      patch_size=14),
    "levit": picture("Levit", size=96, image_size=96, hidden_sizes=[32, 48, 64], num_attention_heads=[2, 3, 4],
                     depths=[1, 1, 1], key_dim=[8, 8, 8]),
    "yolos": picture("Yolos", size=96, num_detection_tokens=10, **{**VISION, "image_size": [96, 96]}),
    "dpt": picture("DPT", "ForDepthEstimation", "predicted_depth", size=96, backbone_out_indices=[0, 0, 1, 1],
                   neck_hidden_sizes=[16, 24, 32, 32], fusion_hidden_size=32, is_hybrid=False, **VISION),
    "sam_vision": sam_vision,
    "mistral": text("Mistral", sliding_window=32, **GROUPED),
    "qwen2": text("Qwen2", **GROUPED),
    "qwen3": text("Qwen3", head_dim=32, **GROUPED),
    "gemma2": text("Gemma2", head_dim=32, attn_logit_softcapping=50.0, final_logit_softcapping=30.0, sliding_window=32,
                   query_pre_attn_scalar=32, **GROUPED),
    "mixtral": text("Mixtral", num_local_experts=4, num_experts_per_tok=2, sliding_window=None, **GROUPED),
    "falcon": text("Falcon", vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, alibi=True),
    "bloom": text("Bloom", vocab_size=1000, hidden_size=128, n_layer=2, n_head=4),
    "opt": text("OPT", vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, ffn_dim=256,
                max_position_embeddings=128, word_embed_proj_dim=128),
    "phi3": text("Phi3", **GROUPED),
    "gpt_neox": text("GPTNeoX", **SMALL),
    "deberta_v2": text("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], max_relative_positions=-1,
                       position_buckets=32, norm_rel_ebd="layer_norm", share_att_key=True, **SMALL),
    "mpnet": text("MPNet", **SMALL),
    "xlnet": text("XLNet", vocab_size=1000, d_model=128, n_layer=2, n_head=4, d_inner=256),
    "albert": text("Albert", embedding_size=64, **SMALL),
    "funnel": text("Funnel", vocab_size=1000, d_model=128, block_sizes=[1, 1], n_head=4, d_head=32, d_inner=256,
                   num_decoder_layers=1),
    "longformer": text("Longformer", attention_window=[16, 16], max_position_embeddings=130, **SMALL),
    "big_bird": text("BigBird", attention_type="block_sparse", block_size=8, num_random_blocks=2,
                     max_position_embeddings=256, length=128, **SMALL),
    "reformer": text("Reformer", vocab_size=1000, hidden_size=64, attention_head_size=16, num_attention_heads=4,
                     attn_layers=["local", "local"], axial_pos_shape=[8, 12], axial_pos_embds_dim=[32, 32],
                     feed_forward_size=128, max_position_embeddings=96, is_decoder=False, local_attn_chunk_length=16),
    "fnet": text("FNet", vocab_size=1000, hidden_size=128, num_hidden_layers=2, intermediate_size=256, mask=False),
    "roformer": text("RoFormer", **SMALL),
    "nystromformer": text("Nystromformer", num_landmarks=16, segment_means_seq_len=96, **SMALL),
    "mamba": text("Mamba", vocab_size=1000, hidden_size=64, num_hidden_layers=2, state_size=8, length=24, mask=False),
    "mamba2": text("Mamba2", vocab_size=1000, hidden_size=64, num_hidden_layers=2, state_size=16, num_heads=8,
                   head_dim=16, n_groups=2, chunk_size=16, length=32, mask=False),
    "rwkv": text("Rwkv", vocab_size=1000, hidden_size=64, attention_hidden_size=64, num_hidden_layers=2, length=16,
                 context_length=64, mask=False),
    "bart": bart,
    "whisper": whisper,
    "wav2vec2": wav2vec2,
    "clip": clip,
    "detr": detr,
    "pix2struct": pix2struct,
}


# --- export -----------------------------------------------------------------------------------------------------------

def export(name, folder, dynamo):
    """In a process of its own: writes the model with its inputs and PyTorch's outputs."""
    import numpy as np
    import onnx
    import torch
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    model, inputs = MODELS[name]()
    model = seeded(model)
    with torch.no_grad():
        wanted = model(*inputs)
    wanted = (wanted,) if isinstance(wanted, torch.Tensor) else tuple(wanted)
    folder.mkdir(parents=True, exist_ok=True)
    for kind, tensors in (("input", inputs), ("output", wanted)):
        for i, tensor in enumerate(tensors):
            np.save(folder / f"{kind}_{i}.npy", tensor.numpy())
    names = [f"input_{i}" for i in range(len(inputs))]
    with torch.no_grad():
        if dynamo:
            program = torch.onnx.export(model, inputs, dynamo=True, opset_version=OPSET, input_names=names,
                                        optimize=True, verbose=False)
            onnx.save(program.model_proto, folder / "model.onnx")
        else:
            torch.onnx.export(model, inputs, str(folder / "model.onnx"), dynamo=False, opset_version=OPSET,
                              input_names=names)


def ensure(name, folder, dynamo, patience):
    """True if the folder has the model; else a line of why not."""
    if (folder / "model.onnx").exists():
        return True
    command = [sys.executable, os.path.abspath(__file__), "--export", name, "--folder", str(folder)]
    command += [] if dynamo else ["--older"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience, check=False)
    except subprocess.TimeoutExpired:
        return f"no export within {patience} s"
    if done.returncode == 0 and (folder / "model.onnx").exists():
        return True
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return (lines or ["died"])[-1][:160]


# --- measuring --------------------------------------------------------------------------------------------------------

def peer(folder):
    """In a process of its own: onnxruntime's error beside PyTorch, and its time."""
    import numpy as np
    sys.path.insert(0, str(HERE))
    import beside_onnxruntime
    import onnxruntime
    figures = beside_onnxruntime.measure_peer(folder, 2, 0.5)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    feed = {port.name: array for port, array in zip(session.get_inputs(), beside_onnxruntime.load_inputs(folder))}
    worst = 0.0
    for i, got in enumerate(session.run(None, feed)):
        want = np.load(folder / f"output_{i}.npy")
        worst = max(worst, float(np.abs(got.astype(np.float64) - want).max() / max(np.abs(want).max(), 1e-30)))
    return {"median_ms": figures["median_ms"], "error": worst}


def run_json(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        return {"failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200]}


def measure(weft, folder, rounds):
    own, theirs = [], []
    for _ in range(rounds):
        own.append(run_json([weft, "bench", folder / "model.onnx", "--check", folder, "--json", "--seconds", "0.5",
                             "--threads", "2"]))
        if "failed" in own[-1]:
            return own[-1], None
        theirs.append(run_json([sys.executable, os.path.abspath(__file__), "--peer", folder]))
    best = {key: statistics.median(f[key] for f in own) for key in
            ("median_ms", "fallback_pct", "plain_pct", "relayout_pct", "max_rel_err")}
    theirs = [f for f in theirs if "failed" not in f]
    other = {key: statistics.median(f[key] for f in theirs) for key in ("median_ms", "error")} if theirs else None
    return best, other


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--weft", default="build/weft")
    parser.add_argument("--folder", type=Path, default=Path("out/architectures"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience", type=int, default=400, help="seconds for an export")
    parser.add_argument("--both", action="store_true", help="the older exporter too, not only if the other fails")
    parser.add_argument("--more", action="store_true", help="the models of more_architectures.py instead")
    parser.add_argument("--export", help=argparse.SUPPRESS)
    parser.add_argument("--older", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--peer", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    import more_architectures # which imports this file
    names = arguments.names or list(more_architectures.MODELS if arguments.more else MODELS)
    MODELS.update(more_architectures.MODELS)
    if arguments.export:
        export(arguments.export, arguments.folder, not arguments.older)
        return 0
    if arguments.peer:
        print(json.dumps(peer(arguments.peer)))
        return 0
    print("| model | exporter | weft ms | onnxruntime ms | weft / ort | error weft, ort | fallback % | plain % "
          "| relayout % |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    bad = 0
    for name in names:
        for dynamo in (True, False):
            folder = arguments.folder / (name if dynamo else f"{name}-older")
            if dynamo and not arguments.both and (arguments.folder / f"{name}-older" / "model.onnx").exists():
                continue # the other exporter failed before
            there = ensure(name, folder, dynamo, arguments.patience)
            how = "dynamo" if dynamo else "older"
            if there is not True:
                print(f"| {name} | {how} | not exported: {there} | | | | | | |", flush=True)
                continue
            own, other = measure(arguments.weft, folder, arguments.rounds)
            if "failed" in own:
                bad += 1
                print(f"| {name} | {how} | FAILED: {own['failed']} | | | | | | |", flush=True)
            else:
                bad += own["plain_pct"] > 3 or own["fallback_pct"] > 0
                other = other or {"median_ms": math.nan, "error": math.nan}
                print(f"| {name} | {how} | {own['median_ms']:.2f} | {other['median_ms']:.2f} "
                      f"| {own['median_ms'] / other['median_ms']:.2f} | {own['max_rel_err']:.1e}, {other['error']:.1e} "
                      f"| {own['fallback_pct']:.1f} | {own['plain_pct']:.1f} | {own['relayout_pct']:.1f} |", flush=True)
            if not arguments.both:
                break
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
