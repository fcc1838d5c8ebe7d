"""Models as people own them, none written for this library; each factory is called without arguments."""

from __future__ import annotations

import torch
from torch import nn

WIDTH = 4
VOCABULARY = 11


class Classifier(nn.Module):
    """One vector for each row: ``Linear(h[-1])``."""

    def __init__(self):
        super().__init__()
        self.core = nn.LSTM(WIDTH, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        _, (h, _) = self.core(x)
        return self.head(h[-1])


class Transposing(nn.Module):
    """Batch first outside, time first inside: its layer says the opposite of what it takes."""

    def __init__(self):
        super().__init__()
        self.core = nn.LSTM(WIDTH, 8)

    def forward(self, x):
        return self.core(x.transpose(0, 1))[0].transpose(0, 1)


class TokenModel(nn.Module):
    """A GRU language model on integer tokens, with dropout."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.dropout = nn.Dropout(0.5)
        self.core = nn.GRU(WIDTH, 8, batch_first=True)
        self.head = nn.Linear(8, VOCABULARY)

    def forward(self, tokens):
        output, _ = self.core(self.dropout(self.embedding(tokens)))
        return self.head(output)


class Convolutions(nn.Module):
    """A TCN of three causal layers, which sees seven steps back; ``(B, F, T)`` in and out, as convolutions take it."""

    reach = 7

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 2, dilation=2**level) for level in range(3))

    def forward(self, x):
        for level, layer in enumerate(self.layers):
            x = torch.tanh(layer(nn.functional.pad(x, (2**level, 0)))) + x
        return x


class BatchFirstConvolutions(nn.Module):
    """The same on ``(B, T, F)``."""

    def __init__(self):
        super().__init__()
        self.inner = Convolutions()

    def forward(self, x):
        return self.inner(x.transpose(1, 2)).transpose(1, 2)


class Stateful(nn.Module):
    """Keeps its state on itself between calls, and returns it beside the output."""

    def __init__(self):
        super().__init__()
        self.core = nn.GRU(WIDTH, 8)
        self.h = None

    def forward(self, x):
        output, self.h = self.core(x, self.h)
        return output, self.h


class FromDictionary(nn.Module):
    """Takes one dictionary: numbers, and a mask of the same layout."""

    def __init__(self):
        super().__init__()
        self.core = nn.LSTM(WIDTH, 8, batch_first=True)

    def forward(self, batch):
        output, _ = self.core(batch["x"] * batch["mask"].unsqueeze(-1))
        return {"output": output, "length": batch["mask"].sum(dim=1)}


def with_dictionary():
    """A model together with the dictionary that it takes."""
    torch.manual_seed(0)
    return FromDictionary(), {"x": torch.randn(3, 20, WIDTH), "mask": torch.ones(3, 20)}


def encoder():
    """torch's Transformer encoder, batch first, with its default dropout."""
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 8, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def both_ways():
    return nn.LSTM(WIDTH, 8, bidirectional=True)


def gpt2():
    """GPT-2 of two tiny layers, random weights."""
    import transformers

    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=64, n_embd=16, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=1
    )
    return transformers.GPT2LMHeadModel(config)


def llama():
    """Llama of two tiny layers with four query heads over two key heads, random weights."""
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return transformers.LlamaForCausalLM(config)


def write_tokenizer(folder):
    """A tokenizer of single letters beside a language model."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<unk>", "<s>", *"abcdefghi"]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    signs = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "<s>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **signs).save_pretrained(folder)
