# SPDX-License-Identifier: Apache-2.0
"""Architectures of Hugging Face at tiny size: a model with seeded weights and example inputs, by name."""

from __future__ import annotations

import torch

SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=99)
DECODER = dict(SMALL, max_position_embeddings=64)
IMAGE = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32,
             patch_size=8)

#: name -> (configuration, model, arguments of the configuration)
TEXT_ENCODERS = {
    "bert": ("BertConfig", "BertModel", SMALL), "roberta": ("RobertaConfig", "RobertaModel", DECODER),
    "electra": ("ElectraConfig", "ElectraModel", dict(SMALL, embedding_size=16)),
    "albert": ("AlbertConfig", "AlbertModel", dict(SMALL, embedding_size=16)),
    "distilbert": ("DistilBertConfig", "DistilBertModel", dict(
        dim=32, n_layers=2, n_heads=4, hidden_dim=64, vocab_size=99)),
    "deberta_v2": ("DebertaV2Config", "DebertaV2Model", SMALL), "mpnet": ("MPNetConfig", "MPNetModel", SMALL),
    "camembert": ("CamembertConfig", "CamembertModel", DECODER),
    "xlm_roberta": ("XLMRobertaConfig", "XLMRobertaModel", DECODER),
    "megatron_bert": ("MegatronBertConfig", "MegatronBertModel", SMALL), "fnet": ("FNetConfig", "FNetModel", SMALL),
    "squeezebert": ("SqueezeBertConfig", "SqueezeBertModel", dict(SMALL, embedding_size=32)),
    "mobilebert": ("MobileBertConfig", "MobileBertModel", dict(SMALL, embedding_size=32, intra_bottleneck_size=32)),
    "modernbert": ("ModernBertConfig", "ModernBertModel", dict(DECODER, pad_token_id=0, reference_compile=False)),
    "roformer": ("RoFormerConfig", "RoFormerModel", SMALL), "layoutlm": ("LayoutLMConfig", "LayoutLMModel", SMALL),
}
DECODERS = {
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", dict(n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64)),
    "gpt_neo": ("GPTNeoConfig", "GPTNeoForCausalLM", dict(hidden_size=32, num_layers=2, num_heads=4, vocab_size=99,
                                                         attention_types=[[["global", "local"], 1]])),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", DECODER), "opt": ("OPTConfig", "OPTForCausalLM", dict(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, vocab_size=99, word_embed_proj_dim=32)),
    "llama": ("LlamaConfig", "LlamaForCausalLM", DECODER), "mistral": ("MistralConfig", "MistralForCausalLM", dict(
        DECODER, num_key_value_heads=2)),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", dict(DECODER, num_key_value_heads=2)),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", dict(DECODER, num_key_value_heads=2, head_dim=8)),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", dict(DECODER, num_key_value_heads=1, head_dim=8)),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", dict(DECODER, num_key_value_heads=2, head_dim=8)),
    "phi": ("PhiConfig", "PhiForCausalLM", DECODER),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", dict(DECODER, pad_token_id=0)),
    "bloom": ("BloomConfig", "BloomForCausalLM", dict(hidden_size=32, n_layer=2, n_head=4, vocab_size=99)),
    "falcon": ("FalconConfig", "FalconForCausalLM", SMALL), "stablelm": ("StableLmConfig", "StableLmForCausalLM", dict(
        DECODER, num_key_value_heads=4)),
    "olmo": ("OlmoConfig", "OlmoForCausalLM", DECODER),
    "starcoder2": ("Starcoder2Config", "Starcoder2ForCausalLM", dict(
        DECODER, num_key_value_heads=2)),
    "codegen": ("CodeGenConfig", "CodeGenForCausalLM", dict(n_embd=32, n_layer=2, n_head=4, vocab_size=99, rotary_dim=4,
                                                           n_positions=64)),
    "granite": ("GraniteConfig", "GraniteForCausalLM", DECODER), "mamba": ("MambaConfig", "MambaForCausalLM", dict(
        hidden_size=32, num_hidden_layers=2, vocab_size=99, state_size=4)),
}
VISION = {
    "vit": ("ViTConfig", "ViTModel", IMAGE), "deit": ("DeiTConfig", "DeiTModel", IMAGE),
    "beit": ("BeitConfig", "BeitModel", IMAGE),
    "dinov2": ("Dinov2Config", "Dinov2Model", IMAGE), "resnet": ("ResNetConfig", "ResNetModel", dict(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")),
    "convnext": ("ConvNextConfig", "ConvNextModel", dict(hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1])),
    "mobilenet_v2": ("MobileNetV2Config", "MobileNetV2Model", dict(depth_multiplier=0.25, image_size=32)),
    "segformer": ("SegformerConfig", "SegformerModel", dict(depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 16, 32])),
    "poolformer": ("PoolFormerConfig", "PoolFormerModel", dict(depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 16, 32])),
    "regnet": ("RegNetConfig", "RegNetModel", dict(embedding_size=8, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1],
                                                   groups_width=8)),
    "swin": ("SwinConfig", "SwinModel", dict(embed_dim=16, depths=[1, 1], num_heads=[2, 4], image_size=32, patch_size=4,
                                             window_size=4)),
    "siglip": ("SiglipVisionConfig", "SiglipVisionModel", IMAGE),
    "clip": ("CLIPVisionConfig", "CLIPVisionModel", IMAGE),
}
PAIRS = {"t5": ("T5Config", "T5ForConditionalGeneration", dict(d_model=32, d_ff=64, d_kv=8, num_layers=2, num_heads=4,
                                                              vocab_size=99)),
         "bart": ("BartConfig", "BartForConditionalGeneration", dict(
             d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
             encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=99, max_position_embeddings=64)),
         "pegasus": ("PegasusConfig", "PegasusForConditionalGeneration", dict(
             d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
             encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=99, max_position_embeddings=64))}
ALL = {**TEXT_ENCODERS, **DECODERS, **VISION, **PAIRS}
#: in the normal run: one of each kind
FEW = ["bert", "llama", "mistral", "vit", "resnet", "convnext", "t5", "mamba"]


class FirstResult(torch.nn.Module):
    """A model whose result is one tensor."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values):
        out = self.model(**dict(zip(self.names, values)), return_dict=True)
        return out.logits if "logits" in out else out.last_hidden_state


def build(name: str):
    """(module in eval mode, example inputs)"""
    import transformers

    config, model, arguments = ALL[name]
    torch.manual_seed(0)
    config = getattr(transformers, config)(**arguments)
    config.use_cache = False
    module = getattr(transformers, model)(config).eval()
    ids, mask = torch.randint(3, 99, (2, 16)), torch.ones(2, 16, dtype=torch.int64)
    mask[1, 12:] = 0
    if name in VISION:
        return FirstResult(module, ["pixel_values"]), (torch.randn(2, 3, 32, 32),)
    if name in PAIRS:
        names = ["input_ids", "attention_mask", "decoder_input_ids"]
        return FirstResult(module, names), (ids, mask, ids[:, :7].clone())
    if name in ("fnet", "mamba"):
        return FirstResult(module, ["input_ids"]), (ids,)
    return FirstResult(module, ["input_ids", "attention_mask"]), (ids, mask)
