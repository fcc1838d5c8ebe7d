"""Tiny random decoders of several families. Weights are large, so that attention is far from uniform."""

from __future__ import annotations

import importlib.util

import pytest
import torch

VOCABULARY = 61


@pytest.fixture(autouse=True)
def transformers(require_or_skip):
    if importlib.util.find_spec("transformers") is None:
        require_or_skip("transformers", "transformers is not installed: pip install 'remanence[hf]'")
    import transformers

    transformers.logging.set_verbosity_error()
    return transformers


@pytest.fixture
def screened_cache(transformers):
    """The class; importing it needs transformers."""
    from remanence.kv import ScreenedCache

    return ScreenedCache


SIZES = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}
SIZES |= {"initializer_range": 0.3, "eos_token_id": None, "bos_token_id": 1, "pad_token_id": 0}


def configuration(transformers, kind, **options):
    if kind == "gpt2":
        sizes = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}
        return transformers.GPT2Config(**(sizes | {"initializer_range": 0.3, "eos_token_id": None} | options))
    sizes = SIZES | {"num_hidden_layers": 3}
    if kind == "llama":
        return transformers.LlamaConfig(**(sizes | {"num_key_value_heads": 2} | options))
    if kind == "qwen":
        return transformers.Qwen3Config(**(sizes | {"num_key_value_heads": 1, "head_dim": 16} | options))
    if kind == "gemma2":  # every other layer has a sliding window; logits of the attention are capped
        windows = {"sliding_window": 6, "num_key_value_heads": 2, "head_dim": 8}
        return transformers.Gemma2Config(**(sizes | windows | options))
    if kind == "gemma":
        return transformers.GemmaConfig(**(sizes | {"num_key_value_heads": 2, "head_dim": 8} | options))
    if kind == "mistral":
        return transformers.MistralConfig(**(sizes | {"sliding_window": None, "num_key_value_heads": 2} | options))
    raise ValueError(kind)


@pytest.fixture
def tiny(transformers):
    """Makes a tiny model: ``tiny("llama")``, in evaluation mode."""

    def make(kind, attention="sdpa", dtype=torch.float32, **options):
        torch.manual_seed(5)
        model = transformers.AutoModelForCausalLM.from_config(configuration(transformers, kind, **options))
        model.set_attn_implementation(attention)
        return model.to(dtype).eval()

    return make


@pytest.fixture
def prompt():
    """Makes tokens that are no sign: ``prompt(rows, length)``."""

    def make(rows, length, seed=0):
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(2, VOCABULARY, (rows, length), generator=generator)

    return make
