"""A bounded key-value cache on a real model: what it costs in loss, saves in time and memory, and what it forgets.

``python -m benchmarks.kv loss MODEL TEXT...``   loss against budget for every screen, beside the full cache; what is
    in docs/kv/loss.jsonl already is not measured again, so that it may be interrupted
``python -m benchmarks.kv presses MODEL TEXT...``  the same for presses of kvpress 0.5.5, if that is installed
``python -m benchmarks.kv speed MODEL``          milliseconds a token and bytes of the cache against the length
``python -m benchmarks.kv passkey MODEL``        a number told early in a text and asked for at its end

MODEL is a folder or a .gguf file (docs/kv.md has SmolLM2-135M). One thread; times are medians of alternating steps.
Each prints a line of JSON for every measurement as soon as it is made. ``BUDGETS=128,256`` before the command measures
these alone, ``MINUTES=20`` ends it after so many.
"""

from __future__ import annotations

import importlib
import json
import lzma
import os
import random
import statistics
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import torch
from benchmarks.measure import machine, timed
from torch import Tensor
from transformers import DynamicCache, logging

from remanence.kv import SCREENS, ScreenedCache, text_loss
from remanence.kv._cache import cache_nbytes
from remanence.kv._compare import losses_together
from remanence.probes import load_language_model

TOKENS = 8000
RECORDS = Path(__file__).parents[1] / "docs" / "kv" / "loss.jsonl"
COUNTED_FROM = 1025
"""The first token that counts, whatever the budgets of one run: the largest of all is 1,024."""
END = time.monotonic() + 60 * float(os.environ.get("MINUTES", "inf"))
BUDGETS = tuple(int(budget) for budget in os.environ.get("BUDGETS", "128,256,512,1024").split(","))
PRESSES = ("TOVAPress", "KnormPress", "KeyDiffPress")
LENGTHS, KEPT, REPEATS = (512, 1024, 2048, 4096, 8192), 512, 11
KEYS, FILLER, SHARES = 5, 22, (0.5, 0.8)


def tell(**line: object) -> None:
    print(json.dumps(line), flush=True)


def full_cache(model):
    return DynamicCache(config=model.config)


def measure_loss(model, tokenizer, files: list[str]) -> None:
    """All screens of a budget side by side; only tokens after the largest budget count, the same for all."""
    known = [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []
    done = {(line["text"], line["policy"], line["budget"]) for line in known}
    for budget in (TOKENS, *BUDGETS):
        for file in files:
            policies = ("full",) if budget == TOKENS else tuple(SCREENS)
            missing = [policy for policy in policies if (name_of(file), policy, budget) not in done]
            if missing and time.monotonic() < END:
                add_losses(model, tokenizer, file, missing, budget)


def add_losses(model, tokenizer, file: str, policies: list[str], budget: int) -> None:
    tokens = read_tokens(tokenizer, [file])
    first = COUNTED_FROM
    if policies == ["full"]:
        caches = [full_cache(model)]
        losses = text_loss(model, tokens, caches[0], first, piece=256)[None]
    else:
        caches = [ScreenedCache(model, budget, screen=screen) for screen in policies]
        losses = losses_together(model, tokens, caches, first)
    facts = {"model": Path(sys.argv[2]).name, "dtype": str(model.dtype), "tokens": TOKENS, "first": first}
    with RECORDS.open("a") as records:
        for policy, cache, loss in zip(policies, caches, losses, strict=True):
            line = {"text": name_of(file), "policy": policy, "budget": budget, "loss": round(float(loss), 5)}
            line |= {"nbytes": cache_nbytes(cache), **facts}
            records.write(json.dumps(line) + "\n")
            tell(**line)


def name_of(file: str) -> str:
    """Of a text: its folder tells more than ``test.txt`` does."""
    path = Path(file)
    return f"{path.parent.name}/{path.name.partition('.xz')[0]}"


def by_file(files: list[str], losses: Tensor) -> dict[str, float]:
    return {Path(file).name.partition(".")[0]: float(loss) for file, loss in zip(files, losses, strict=True)}


def read_tokens(tokenizer, files: list[str]) -> Tensor:
    """The beginnings of all texts, (B, TOKENS)."""
    texts = [read(Path(file)) for file in files]
    return torch.stack([tokenizer(text[: 20 * TOKENS], return_tensors="pt").input_ids[0, :TOKENS] for text in texts])


def measure_presses(model, tokenizer, files: list[str]) -> None:
    """kvpress lets keys go after every piece too, down to the budget; its decoding press is made for that."""
    kvpress = importlib.import_module("kvpress")
    tokens = read_tokens(tokenizer, files)
    for budget in BUDGETS:
        for name in PRESSES:
            press = kvpress.DecodingPress(getattr(kvpress, name)(), compression_interval=1, target_size=budget)
            cache = full_cache(model)
            with press(model), true_positions(model):
                losses = text_loss(model, tokens, cache, first=COUNTED_FROM)
            tell(policy=name, budget=budget, nbytes=cache_nbytes(cache) // len(tokens), **by_file(files, losses))


@contextmanager
def true_positions(model):
    """Tells the model and kvpress where tokens stand in the text: a cache that has let keys go has lost count.

    Transformers 5 gives no `cache_position` to its attention layers any more, which kvpress 0.5.5 asks for.
    """
    places = torch.arange(0)

    def enter(_, args, kwargs):
        nonlocal places
        begin = int(places[-1]) + 1 if len(places) else 0
        places = torch.arange(begin, begin + args[0].shape[1])
        return args, {**kwargs, "position_ids": places[None]}

    def attend(_, args, kwargs):
        return args, {**kwargs, "cache_position": places}

    hooks = [model.register_forward_pre_hook(enter, with_kwargs=True)]
    for layer in model.model.layers:
        hooks.append(layer.self_attn.register_forward_pre_hook(attend, with_kwargs=True))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def read(path: Path) -> str:
    raw = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    return raw.decode("utf-8", "replace")


@torch.no_grad()
def measure_speed(model) -> None:
    """One token more, at each length. What the keys are does not matter to the time: they are random."""
    caches = {}
    for length in LENGTHS:
        caches["full", length] = filled(model, length)
    for screen in ("window", "attention", "mean"):
        cache = ScreenedCache(model, KEPT, screen=screen)
        model(torch.randint(1000, (1, KEPT + 32)), past_key_values=cache)
        caches[screen, KEPT] = cache
    token = torch.tensor([[7]])
    times: dict[tuple[str, int], list[float]] = {name: [] for name in caches}
    for repeat in range(REPEATS + 1):
        for name, cache in caches.items():
            seconds = timed(lambda cache=cache: model(token, past_key_values=cache))
            times[name] += [seconds] if repeat else []
    for (policy, length), found in times.items():
        ms = 1e3 * statistics.median(found)
        tell(policy=policy, keys=length, ms=ms, nbytes=cache_nbytes(caches[policy, length]))


def filled(model, length: int) -> DynamicCache:
    cache = full_cache(model)
    config = model.config
    shape = (1, config.num_key_value_heads, length, config.head_dim)
    for layer in range(config.num_hidden_layers):
        cache.update(torch.randn(shape), torch.randn(shape), layer)
    return cache


def measure_passkey(model, tokenizer) -> None:
    """The key stands after a fifth of the filler. Budgets are shares of the length."""
    generator = random.Random(0)
    keys = [str(generator.randrange(10_000, 100_000)) for _ in range(KEYS)]
    tokenizer.padding_side = "left"
    batch = tokenizer([passkey_prompt(tokenizer, key) for key in keys], return_tensors="pt", padding=True)
    length = batch.input_ids.shape[1]
    tell(policy="full", budget=length, right=recalled(model, tokenizer, batch, keys, full_cache(model)))
    for share in SHARES:
        for screen in SCREENS:
            cache = ScreenedCache(model, int(share * length), screen=screen)
            right = recalled(model, tokenizer, batch, keys, cache)
            tell(policy=screen, budget=cache.policy.budget, right=right)


def passkey_prompt(tokenizer, key: str) -> str:
    filler = ["The grass is green. The sky is blue. The sun is yellow. Here we go."] * FILLER
    filler.insert(FILLER // 5, f"The pass key is {key}. Remember it. {key} is the pass key.")
    said = " ".join(filler) + " What is the pass key?"
    chat = [{"role": "user", "content": said}]
    return tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) + "The pass key is"


def recalled(model, tokenizer, batch: dict[str, Tensor], keys: list[str], cache) -> int:
    found = model.generate(**batch, past_key_values=cache, max_new_tokens=8, do_sample=False)
    told = tokenizer.batch_decode(found[:, batch["input_ids"].shape[1] :])
    return sum(key in text for key, text in zip(keys, told, strict=True))


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    what, place, *files = sys.argv[1:]
    model, tokenizer = load_language_model(place)
    if what in ("loss", "presses"):
        model.to(torch.bfloat16)  # half the time where the processor has instructions for it
    tell(**machine(), torch=str(torch.__version__), model=Path(place).name)
    if what == "loss":
        measure_loss(model, tokenizer, files)
    elif what == "presses":
        measure_presses(model, tokenizer, files)
    elif what == "speed":
        measure_speed(model)
    elif what == "passkey":
        measure_passkey(model, tokenizer)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
