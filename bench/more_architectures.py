# SPDX-License-Identifier: Apache-2.0
"""More models for architectures.py --more: builders by name, each gives a module and its inputs."""
from architectures import GROUPED, SMALL, VISION, numbers, picture, text, tokens, wrap


def model(name, kind, names, field, inputs, **config):
    def build():
        import transformers
        settings = getattr(transformers, f"{name}Config")(**config)
        settings.use_cache = False
        return wrap(getattr(transformers, f"{name}{kind}")(settings), names, field), inputs()
    return build


def audio(name, **config):
    """An encoder of samples."""
    settings = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
                "conv_dim": (32, 32, 32, 32), "conv_stride": (5, 2, 2, 2), "conv_kernel": (10, 3, 3, 2),
                "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, **config}
    return model(name, "Model", ("input_values",), "last_hidden_state", lambda: (numbers(1, 8000),), **settings)


def sequences():
    return tokens(1, 64, 900), tokens(1, 16, 900)


def translator(name, **config):
    """An encoder and decoder of tokens."""
    settings = {"vocab_size": 1000, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2,
                "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128,
                "decoder_ffn_dim": 128, "max_position_embeddings": 128, **config}
    return model(name, "Model", ("input_ids", "decoder_input_ids"), "last_hidden_state", sequences, **settings)


def detector(name, stages, **config):
    def build():
        import transformers
        backbone = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1],
                                             out_features=stages)
        settings = getattr(transformers, f"{name}Config")(
            use_timm_backbone=False, backbone_config=backbone, use_pretrained_backbone=False, backbone=None, d_model=64,
            encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=128, decoder_ffn_dim=128, num_queries=20, num_labels=10, **config)
        return wrap(getattr(transformers, f"{name}ForObjectDetection")(settings), ("pixel_values",),
                    ("logits", "pred_boxes")), (numbers(1, 3, 128, 160),)
    return build


MODELS = {
    "electra": text("Electra", embedding_size=64, **SMALL),
    "convbert": text("ConvBert", embedding_size=64, **SMALL),
    "mobilebert": text("MobileBert", vocab_size=1000, hidden_size=128, embedding_size=64, num_hidden_layers=2,
                       num_attention_heads=4, intermediate_size=128, intra_bottleneck_size=64),
    "squeezebert": text("SqueezeBert", embedding_size=128, **SMALL),
    "esm": text("Esm", mask_token_id=4, pad_token_id=1, position_embedding_type="rotary", **SMALL),
    "modernbert": text("ModernBert", global_attn_every_n_layers=2, local_attention=32, pad_token_id=0, bos_token_id=1,
                       eos_token_id=2, cls_token_id=1, sep_token_id=2, **SMALL),
    "megatron_bert": text("MegatronBert", **SMALL),
    "gptj": text("GPTJ", vocab_size=1000, n_embd=128, n_layer=2, n_head=4, rotary_dim=16, n_positions=128),
    "codegen": text("CodeGen", vocab_size=1000, n_embd=128, n_layer=2, n_head=4, rotary_dim=16, n_positions=128),
    "gpt_bigcode": text("GPTBigCode", vocab_size=1000, n_embd=128, n_layer=2, n_head=4, n_positions=128),
    "gpt_neo": text("GPTNeo", vocab_size=1000, hidden_size=128, num_layers=2, num_heads=4,
                    attention_types=[[["global", "local"], 1]], window_size=32, max_position_embeddings=128),
    "stablelm": text("StableLm", **GROUPED),
    "olmo2": text("Olmo2", **GROUPED),
    "cohere": text("Cohere", **GROUPED),
    "starcoder2": text("Starcoder2", sliding_window=32, **GROUPED),
    "gemma3": text("Gemma3Text", kind="Model", head_dim=32, sliding_window=32, **GROUPED),
    "glm": text("Glm", head_dim=32, **GROUPED),
    "granite": text("Granite", **GROUPED),
    "nemotron": text("Nemotron", **GROUPED),
    "mpt": text("Mpt", vocab_size=1000, d_model=128, n_layers=2, n_heads=4, max_seq_len=128),
    "biogpt": text("BioGpt", **SMALL),
    "xglm": text("XGLM", vocab_size=1000, d_model=128, num_layers=2, attention_heads=4, ffn_dim=256,
                 max_position_embeddings=128),
    "ctrl": text("CTRL", vocab_size=1000, n_embd=128, n_layer=2, n_head=4, dff=256, n_positions=128),
    "recurrent_gemma": text("RecurrentGemma", attention_window_size=32, lru_width=128, num_hidden_layers=3,
                            **{k: v for k, v in GROUPED.items() if k != "num_hidden_layers"}),
    "falcon_mamba": text("FalconMamba", vocab_size=1000, hidden_size=64, num_hidden_layers=2, state_size=8, length=24,
                         mask=False),
    "pegasus": translator("Pegasus"),
    "marian": translator("Marian", pad_token_id=0, decoder_start_token_id=0),
    "m2m_100": translator("M2M100"),
    "led": translator("LED", attention_window=[16, 16], max_encoder_position_embeddings=128,
                  max_decoder_position_embeddings=128),
    "longt5": model("LongT5", "Model", ("input_ids", "decoder_input_ids"), "last_hidden_state", lambda: (tokens(1, 64,
                    900), tokens(1, 16, 900)), vocab_size=1000, d_model=64, d_kv=16, d_ff=128, num_layers=2,
                    num_heads=4, local_radius=15, decoder_start_token_id=0),
    "prophetnet": model("ProphetNet", "Model", ("input_ids", "decoder_input_ids"), "last_hidden_state",
                        sequences, vocab_size=1000, hidden_size=64,
                        num_encoder_layers=2, num_decoder_layers=2, num_encoder_attention_heads=4,
                        num_decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
                        max_position_embeddings=128),
    "pvt": picture("Pvt", size=96, image_size=96, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1],
                   num_attention_heads=[1, 2, 3, 4], sequence_reduction_ratios=[8, 4, 2, 1]),
    "pvt_v2": picture("PvtV2", size=96, image_size=96, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1],
                      num_attention_heads=[1, 2, 3, 4]),
    "focalnet": picture("FocalNet", size=96, image_size=96, embed_dim=24, depths=[1, 1, 2, 1]),
    "regnet": picture("RegNet", size=96, embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 2, 1],
                      groups_width=8),
    "vit_mae": picture("ViTMAE", field="last_hidden_state", size=96, **VISION),
    "siglip": picture("SiglipVision", size=96, **VISION),
    "dinov3": picture("DINOv3ViT", size=96, **VISION),
    "data2vec_vision": picture("Data2VecVision", size=96, **VISION),
    "swin2sr": picture("Swin2SR", "ForImageSuperResolution", "reconstruction", size=64, image_size=64, embed_dim=24,
                       depths=[2, 2], num_heads=[2, 2], window_size=8, upscale=2),
    "glpn": picture("GLPN", "ForDepthEstimation", "predicted_depth", size=64, depths=[1, 1, 1, 1], hidden_sizes=[16,
                    32, 48, 64], num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=32),
    "superpoint": picture("SuperPoint", "ForKeypointDetection", "descriptors", size=64),
    "timesformer": model("Timesformer", "Model", ("pixel_values",), "last_hidden_state", lambda: (numbers(1, 4, 3, 64,
                         64),), num_frames=4, **{**VISION, "image_size": 64}),
    "vivit": model("Vivit", "Model", ("pixel_values",), "last_hidden_state", lambda: (numbers(1, 4, 3, 64, 64),),
                   num_frames=4, tubelet_size=[2, 16, 16], **{k: v for k, v in {**VISION,
                   "image_size": 64}.items() if k != "patch_size"}),
    "videomae": model("VideoMAE", "ForVideoClassification", ("pixel_values",), "logits", lambda: (numbers(1, 4, 3, 64,
                      64),), num_frames=4, tubelet_size=2, **{**VISION, "image_size": 64}),
    "hubert": audio("Hubert"),
    "wavlm": audio("WavLM"),
    "sew": audio("SEW", conv_dim=(32, 32, 32, 32), squeeze_factor=2),
    "wav2vec2_conformer": audio("Wav2Vec2Conformer", position_embeddings_type="relative"),
    "speech_to_text": model("Speech2Text", "Model", ("input_features", "decoder_input_ids"), "last_hidden_state",
                            lambda: (numbers(1, 120, 40), tokens(1, 12, 900)), vocab_size=1000, d_model=64,
                            encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                            encoder_ffn_dim=128, decoder_ffn_dim=128, conv_channels=64, input_feat_per_channel=40),
    "ast": model("AST", "Model", ("input_values",), "last_hidden_state", lambda: (numbers(1, 128, 64),),
                 hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=192, max_length=128,
                 num_mel_bins=64),
    "encodec": model("Encodec", "Model", ("input_values",), "audio_values", lambda: (numbers(1, 1, 4000),),
                     num_filters=8, hidden_size=32, codebook_dim=32, upsampling_ratios=[4, 4, 2, 2]),
    "dac": model("Dac", "Model", ("input_values",), "audio_values", lambda: (numbers(1, 1, 4096),),
                 encoder_hidden_size=16, decoder_hidden_size=128, n_codebooks=2, codebook_size=64,
                 downsampling_ratios=[2, 4, 4], upsampling_ratios=[4, 4, 2]),
    "patchtst": model("PatchTST", "Model", ("past_values",), "last_hidden_state", lambda: (numbers(2, 96, 5),),
                      num_input_channels=5, context_length=96, patch_length=12, patch_stride=12, d_model=64,
                      num_attention_heads=4, num_hidden_layers=2, ffn_dim=128),
    "patchtsmixer": model("PatchTSMixer", "Model", ("past_values",), "last_hidden_state", lambda: (numbers(2, 96,
                          5),), num_input_channels=5, context_length=96, patch_length=12, patch_stride=12, d_model=64,
                          num_layers=2),
    "decision_transformer": model("DecisionTransformer", "Model", ("states", "actions", "rewards", "returns_to_go",
                                  "timesteps"), ("state_preds", "action_preds"), lambda: (numbers(1, 20, 17),
                                  numbers(1, 20, 4), numbers(1, 20, 1), numbers(1, 20, 1), tokens(1, 20, 100)),
                                  hidden_size=64, n_layer=2, n_head=4),
    "conditional_detr": detector("ConditionalDetr", ["stage4"]),
    "deformable_detr": detector("DeformableDetr", ["stage2", "stage3", "stage4"], disable_custom_kernels=True),
}
