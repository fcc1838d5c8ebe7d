"""A bounded key-value cache on a real model: what it costs in loss, saves in time and memory, and what it forgets.

``python -m benchmarks.kv loss MODEL TEXT...``   loss against budget for every screen, beside the full cache
``python -m benchmarks.kv sinks MODEL TEXT...``  the same with four sinks where a screen has none, and none for the mean
``python -m benchmarks.kv presses MODEL TEXT...``  the same for presses of kvpress 0.5.5, if that is installed
``python -m benchmarks.kv speed MODEL``          milliseconds a token and bytes of the cache against the length
``python -m benchmarks.kv passkey MODEL``        a number told early in a text and asked for at its end

MODEL is a folder or a .gguf file (docs/kv.md has SmolLM2-135M). One thread; times are medians of alternating steps.
Each measurement is printed as a line of JSON as soon as it is made, and added to a file in docs/kv. What stands there
is not measured again, so every command may be interrupted; only times are always measured anew, all in one run.
``BUDGETS=128,256`` before the command measures these alone, ``MINUTES=20`` ends it after so many.
"""

from __future__ import annotations

import copy
import importlib
import itertools
import json
import lzma
import os
import random
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from benchmarks.measure import machine, medians
from torch import Tensor
from transformers import DynamicCache, logging

from remanence.kv import SCREENS, ScreenedCache, text_loss
from remanence.kv._cache import cache_nbytes
from remanence.kv._compare import losses_together
from remanence.probes import load_language_model

TOKENS = 8000
RECORDS = Path(__file__).parents[1] / "docs" / "kv"
COUNTED_FROM = 1025
"""The first token that counts, whatever the budgets of one run: the largest of all is 1,024."""
END = time.monotonic() + 60 * float(os.environ.get("MINUTES", "inf"))
BUDGETS = tuple(int(budget) for budget in os.environ.get("BUDGETS", "128,256,512,1024").split(","))
SINKS = {"attention": 4, "value": 4, "h2o": 4, "tova": 4, "mean": 0}
"""Not what these screens have by default: is it the screen or its sinks?"""
PRESSES = ("TOVAPress", "KnormPress", "KeyDiffPress")
LENGTHS = (512, 1024, 2048, 4096, 8192)
KEPT = 512
REPEATS = 11
KEYS = 5
FILLER = 22
SHARES = (0.5, 0.8, 0.9)


def tell(**line: object) -> None:
    print(json.dumps(line), flush=True)


def known(name: str) -> list[dict[str, Any]]:
    """What has been measured already."""
    path = RECORDS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def record(name: str, model, **line: object) -> None:
    line |= {"model": Path(sys.argv[2]).name, "dtype": str(model.dtype)}
    with (RECORDS / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    tell(**line)


def full_cache(model):
    return DynamicCache(config=model.config)


def measure_loss(model, tokenizer, files: list[str]) -> None:
    """All screens of a budget side by side; only tokens after the largest budget count, the same for all."""
    done = {(line["text"], line["policy"], line["budget"]) for line in known("loss")}
    for file in files:
        for budget in (TOKENS, *BUDGETS):
            policies = ("full",) if budget == TOKENS else tuple(SCREENS)
            missing = [policy for policy in policies if (name_of(file), policy, budget) not in done]
            if missing and time.monotonic() < END:
                add_losses(model, tokenizer, file, missing, budget)


def add_losses(model, tokenizer, file: str, policies: list[str], budget: int) -> None:
    tokens = read_tokens(tokenizer, file)
    if policies == ["full"]:
        caches = [full_cache(model)]
        losses = text_loss(model, tokens, caches[0], COUNTED_FROM, piece=256)[None]
    else:
        caches = [ScreenedCache(model, budget, screen=screen) for screen in policies]
        losses = losses_together(model, tokens, caches, COUNTED_FROM)
    for policy, cache, loss in zip(policies, caches, losses, strict=True):
        record_loss(model, file, policy, budget, cache, loss)


def measure_sinks(model, tokenizer, files: list[str]) -> None:
    done = {(line["text"], line["policy"], line["budget"]) for line in known("loss")}
    for file, budget in itertools.product(files, BUDGETS):
        names = {f"{screen}, {sinks} sinks": screen for screen, sinks in SINKS.items()}
        missing = {name: screen for name, screen in names.items() if (name_of(file), name, budget) not in done}
        if not missing or time.monotonic() > END:
            continue
        caches = [ScreenedCache(model, budget, screen=screen, sinks=SINKS[screen]) for screen in missing.values()]
        losses = losses_together(model, read_tokens(tokenizer, file), caches, COUNTED_FROM)
        for name, cache, loss in zip(missing, caches, losses, strict=True):
            record_loss(model, file, name, budget, cache, loss)


def record_loss(model, file: str, policy: str, budget: int, cache, loss: Tensor) -> None:
    facts = {"nbytes": cache_nbytes(cache), "tokens": TOKENS, "first": COUNTED_FROM}
    record("loss", model, text=name_of(file), policy=policy, budget=budget, loss=round(float(loss), 5), **facts)


def name_of(file: str) -> str:
    """Of a text: its folder tells more than ``test.txt`` does."""
    path = Path(file)
    return f"{path.parent.name}/{path.name.partition('.xz')[0]}"


def read_tokens(tokenizer, file: str) -> Tensor:
    """The beginning of a text, (1, TOKENS)."""
    return tokenizer(read(Path(file))[: 20 * TOKENS], return_tensors="pt").input_ids[:, :TOKENS]


def measure_presses(model, tokenizer, files: list[str]) -> None:
    """kvpress lets keys go after every piece too, down to the budget; its decoding press is made for that."""
    kvpress = importlib.import_module("kvpress")
    done = {(line["text"], line["policy"], line["budget"]) for line in known("loss")}
    for file, budget, name in itertools.product(files, BUDGETS, PRESSES):
        if (name_of(file), name, budget) in done or time.monotonic() > END:
            continue
        press = kvpress.DecodingPress(getattr(kvpress, name)(), compression_interval=1, target_size=budget)
        cache = full_cache(model)
        with press(model), true_positions(model):
            loss = text_loss(model, read_tokens(tokenizer, file), cache, COUNTED_FROM)
        record_loss(model, file, name, budget, cache, loss)


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
    caches = {("full", length): filled(model, length) for length in LENGTHS}
    for screen in ("window", "attention", "mean"):
        cache = ScreenedCache(model, KEPT, screen=screen)
        model(torch.randint(1000, (1, KEPT + 32)), past_key_values=cache)
        caches |= {(screen, length): moved(cache, length) for length in LENGTHS}
    token = torch.tensor([[7]])
    runs = {name: partial(model, token, past_key_values=cache) for name, cache in caches.items()}
    found = medians(runs, REPEATS)
    (RECORDS / "speed.jsonl").unlink(missing_ok=True)
    for (policy, length), seconds in found.items():
        keys = length if policy == "full" else KEPT
        nbytes = cache_nbytes(caches[policy, length])
        record("speed", model, policy=policy, length=length, keys=keys, ms=round(1e3 * seconds, 2), nbytes=nbytes)


def moved(cache: ScreenedCache, length: int) -> ScreenedCache:
    """The same keys, held by a cache that has seen so many tokens."""
    cache = copy.deepcopy(cache)
    for layer in cache.layers:
        layer.seen = length
    return cache


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
    done = {(line["policy"], line["share"]) for line in known("passkey")}
    for share, policy in ((1.0, "full"), *itertools.product(SHARES, SCREENS)):
        if (policy, share) in done or time.monotonic() > END:
            continue
        budget = int(share * length)
        cache = full_cache(model) if policy == "full" else ScreenedCache(model, budget, screen=policy)
        right = recalled(model, tokenizer, batch, keys, cache)
        facts = {"right": right, "of": KEYS, "length": length}
        record("passkey", model, policy=policy, share=share, budget=budget, **facts)


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
    if what in ("loss", "sinks", "presses"):
        model.to(torch.bfloat16)  # half the time where the processor has instructions for it
    tell(**machine(), torch=str(torch.__version__), model=Path(place).name)
    if what == "loss":
        measure_loss(model, tokenizer, files)
    elif what == "sinks":
        measure_sinks(model, tokenizer, files)
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
