"""Causal language models of the Hugging Face library as a source of text; the only file here that knows it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from remanence._validate import message, out_of_memory, positive_int, real

PART = 25
"""Texts that are drawn side by side."""


def _transformers() -> Any:
    try:
        import transformers  # type: ignore[import-not-found]
    except ImportError as error:
        raise ImportError("a language model needs transformers: pip install 'remanence[hf]'") from error
    return transformers


def _require_for_gguf() -> None:
    missing = [name for name in ("gguf", "accelerate") if find_spec(name) is None]
    if missing:
        found = " and ".join(missing)
        raise ImportError(
            f"a .gguf file needs the packages gguf and accelerate; missing: {found}. pip install gguf accelerate"
        )


def load_language_model(place: str | Path, *, download: bool = False, needs_tokenizer: bool = True) -> tuple[Any, Any]:
    """Loads a causal language model and its tokenizer.

    Args:
        place: a folder as ``save_pretrained`` writes it, a ``.gguf`` file (which needs the packages ``gguf`` and
            ``accelerate``), or the name of a model that has been fetched before.
        download: whether a model that is not on this machine may be fetched.
        needs_tokenizer: whether a folder without a tokenizer is refused.

    Returns:
        The model in evaluation mode, and the tokenizer; None if there is none and none is needed.

    Raises:
        ImportError: transformers is missing, or what a ``.gguf`` file needs.
        ValueError: there is no such model here.

    Example:
        >>> load_language_model("no/such-model")  # doctest: +SKIP
        Traceback (most recent call last):
        ValueError: `place` must be ...
    """
    library = _transformers()
    path = Path(place)
    if not path.exists() and _is_path(place):
        raise ValueError(message("place", "exist", repr(str(place)), "Name a folder with config.json and weights"))
    # Said aloud: without it transformers asks at the terminal whether code in the folder may run.
    options = dict[str, bool | str](local_files_only=not download, trust_remote_code=False)
    source = str(place)
    if path.suffix == ".gguf":
        _require_for_gguf()
        source = str(path.parent)
        options["gguf_file"] = path.name
    else:
        options["use_safetensors"] = True  # other weights are pickles
    try:
        _require_no_kernels(library.AutoConfig.from_pretrained(source, **options))
        tokenizer = _tokenizer(library, source, needs_tokenizer, options)
        model = library.AutoModelForCausalLM.from_pretrained(source, **options)
    except Exception as error:  # settings and weights may be anything, and so are the errors about them
        if out_of_memory(error):
            raise
        expected = "be a folder, a .gguf file or a known name of a causal language model"
        hint = str(error).splitlines()[0].rstrip(".") if str(error) else repr(error)
        if isinstance(error, KeyError):  # which says no more than a name
            hint = repr(error)
        if not download and not path.exists():
            hint += ". Pass download=True (--download) to fetch it"
        raise ValueError(message("place", expected, repr(str(place)), hint)) from error
    return model.eval(), tokenizer


def _tokenizer(library: Any, source: str, needed: bool, options: dict[str, bool | str]) -> Any:
    try:
        return library.AutoTokenizer.from_pretrained(source, **options)
    except Exception as error:  # a missing tokenizer has no type of error of its own
        if needed or out_of_memory(error):
            raise
        return None


def _require_no_kernels(config: Any) -> None:
    """Refuses settings that name a repository whose code would be fetched and run to compute the attention."""
    for table in (config, config.get_text_config()):
        named = getattr(table, "_attn_implementation", None)
        if "/" in str(named):
            raise ValueError(f"its config.json names code to run (attn_implementation {named!r:.80})")


def _is_path(place: str | Path) -> bool:
    """Whether a place is on this machine: names of models have one slash at most, and none in front."""
    text = str(place)
    return isinstance(place, Path) or text.startswith(("/", ".", "~")) or text.count("/") > 1 or text.endswith(".gguf")


@torch.no_grad()
def sample_texts(
    model: Any, tokenizer: Any, count: int = 500, tokens: int = 1024, *, temperature: float = 1.0, seed: int = 0
) -> list[str]:
    """Samples texts from a causal language model, each from its start token alone.

    Tokens are sampled from the full distribution, not from the most likely few: truncation would measure the sampling
    and not the model. A text ends where the model ends it.

    Args:
        model: anything with ``model(input_ids, past_key_values=..., use_cache=True)`` and its ``config``.
        tokenizer: with ``decode`` and start and end tokens.
        count: how many; Shen 2019 uses 500.
        tokens: greatest length of each, start token included; no more than the model's context.
        temperature: by which logits are divided.
        seed: seed for sampling.

    Returns:
        The texts, without special tokens.

    Raises:
        ValueError: the tokenizer has no start token.

    Example:
        >>> model, tokenizer = load_language_model("my-model")  # doctest: +SKIP
        >>> len(sample_texts(model, tokenizer, 10, 100))  # doctest: +SKIP
        10
    """
    positive_int("count", count)
    context = getattr(model.config, "max_position_embeddings", None)
    positive_int("tokens", tokens, 2)
    if context is not None:
        tokens = min(tokens, int(context))
    real("temperature", temperature, above=0.0)
    start = _start(tokenizer)
    generator = torch.Generator().manual_seed(positive_int("seed", seed, 0))
    sizes = [min(PART, count - at) for at in range(0, count, PART)]
    rows = [row for size in sizes for row in _draw(model, start, size, tokens, temperature, generator)]
    end = getattr(tokenizer, "eos_token_id", None)
    return [tokenizer.decode(_until(row[1:], end), skip_special_tokens=True) for row in rows]


@torch.no_grad()
def sample_tokens(model: Any, tokenizer: object, rows: int, steps: int, *, seed: int = 0) -> torch.Tensor:
    """Samples tokens from a causal language model, from its start token on, without stopping at an end token.

    Args:
        model: as for :func:`sample_texts`.
        tokenizer: with a start or an end token; None takes those of the model's settings, or token 0.
        rows: B.
        steps: T; no more than the model's context.
        seed: seed for sampling.

    Returns:
        int64 ``(B, T)``.

    Example:
        >>> model, tokenizer = load_language_model("my-model")  # doctest: +SKIP
        >>> sample_tokens(model, tokenizer, 4, 100).shape  # doctest: +SKIP
        torch.Size([4, 100])
    """
    generator = torch.Generator().manual_seed(positive_int("seed", seed, 0))
    start = _start_of_model(model) if tokenizer is None else _start(tokenizer)
    return torch.tensor(_draw(model, start, rows, steps, 1.0, generator))


def _start_of_model(model: Any) -> int:
    """The start or end token that the settings name, if the model has it."""
    for name in ("bos_token_id", "eos_token_id"):
        found = getattr(model.config, name, None)
        if isinstance(found, int) and 0 <= found < model.config.vocab_size:
            return found
    return 0


def _start(tokenizer: object) -> int:
    for name in ("bos_token_id", "eos_token_id"):
        if (found := getattr(tokenizer, name, None)) is not None:
            return int(found)
    raise ValueError(message("tokenizer", "have a start or an end token", "neither"))


def _draw(
    model: Any, start: int, rows: int, length: int, temperature: float, generator: torch.Generator
) -> list[list[int]]:
    device = next(model.parameters()).device
    drawn = [torch.full((rows, 1), start)]
    past = None
    while len(drawn) < length:
        found = model(input_ids=drawn[-1].to(device), past_key_values=past, use_cache=True)
        past = found.past_key_values
        chances = torch.softmax(found.logits[:, -1].float().cpu() / temperature, dim=-1)
        drawn.append(torch.multinomial(chances, 1, generator=generator))
    return torch.cat(drawn, dim=1).tolist()


def _until(tokens: list[int], end: int | None) -> list[int]:
    if end not in tokens:
        return tokens
    return tokens[: tokens.index(end)]
