"""A tiny real language model, written out as Hugging Face keeps them: stories260K of the llama2.c project."""

import json
import struct

import numpy as np
import torch


def read_weights(path):
    """Sizes and matrices of llama2.c's first format."""
    raw = path.read_bytes()
    names = ("dim", "hidden", "layers", "heads", "kv_heads", "vocabulary", "context")
    sizes = dict(zip(names, struct.unpack("<7i", raw[:28]), strict=True))
    numbers = torch.from_numpy(np.frombuffer(raw, dtype="<f4", offset=28).copy())
    dim, hidden, layers = sizes["dim"], sizes["hidden"], sizes["layers"]
    kv = dim * sizes["kv_heads"] // sizes["heads"]
    shapes = {"embedding": (sizes["vocabulary"], dim), "attention_norm": (layers, dim), "q": (layers, dim, dim)}
    shapes |= {"k": (layers, kv, dim), "v": (layers, kv, dim), "o": (layers, dim, dim), "ffn_norm": (layers, dim)}
    shapes |= {
        "gate": (layers, hidden, dim),
        "down": (layers, dim, hidden),
        "up": (layers, hidden, dim),
        "norm": (dim,),
    }
    found, at = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        found[name], at = numbers[at : at + size].view(shape), at + size
    return sizes, found


def halves(matrix, heads):
    """Rotary pairs lie side by side there, half a head apart here."""
    rows, columns = matrix.shape
    return matrix.view(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)


def state_dict(sizes, weights):
    state = {"model.embed_tokens.weight": weights["embedding"], "model.norm.weight": weights["norm"]}
    state["lm_head.weight"] = weights["embedding"]
    for layer in range(sizes["layers"]):
        names = {
            "self_attn.q_proj": halves(weights["q"][layer], sizes["heads"]),
            "self_attn.k_proj": halves(weights["k"][layer], sizes["kv_heads"]),
            "self_attn.v_proj": weights["v"][layer],
            "self_attn.o_proj": weights["o"][layer],
            "mlp.gate_proj": weights["gate"][layer],
            "mlp.down_proj": weights["down"][layer],
            "mlp.up_proj": weights["up"][layer],
            "input_layernorm": weights["attention_norm"][layer],
            "post_attention_layernorm": weights["ffn_norm"][layer],
        }
        state |= {f"model.layers.{layer}.{name}.weight": value for name, value in names.items()}
    return state


def read_vocabulary(path):
    raw, at, words = path.read_bytes(), 4, []
    while at < len(raw):
        (length,) = struct.unpack("<i", raw[at + 4 : at + 8])
        words.append(raw[at + 8 : at + 8 + length].decode("utf-8", "replace"))
        at += 8 + length
    return words


def write_model(models, folder):
    """Writes model and tokenizer into a folder that `from_pretrained` reads."""
    import transformers

    sizes, weights = read_weights(models / "stories260K.bin")
    config = transformers.LlamaConfig(
        vocab_size=sizes["vocabulary"],
        hidden_size=sizes["dim"],
        intermediate_size=sizes["hidden"],
        num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"],
        num_key_value_heads=sizes["kv_heads"],
        max_position_embeddings=sizes["context"],
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=1,
    )
    model = transformers.LlamaForCausalLM(config)
    model.load_state_dict(state_dict(sizes, weights))
    model.save_pretrained(folder)
    write_tokenizer(read_vocabulary(models / "tok512.bin"), folder)


def write_tokenizer(words, folder):
    """For writing tokens out, which is all that sampling needs."""
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    words = ["<unk>", "<s>", "</s>", *words[3:]]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    signs = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "<s>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **signs).save_pretrained(folder)
    json.loads((folder / "tokenizer.json").read_text())
