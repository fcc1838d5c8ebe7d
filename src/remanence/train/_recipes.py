"""Settings to start from, for a task and a model: those of the documents, or what did better here."""

from __future__ import annotations

from remanence._validate import one_of
from remanence.nn import list_models
from remanence.runs import Values
from remanence.train._config import RunConfig, config_from

_RECALL: Values = {
    "task": {"batch_size": 10},
    "loop": {"clip_norm": 1.0},
    "budget": {"updates": 20_000, "accuracy": 0.995},
    "evaluation": {"every": 500, "batches": 2, "batch_size": 50},
}
_TEXT: Values = {
    "task": {"batch_size": 32},
    "model": {"options": {"encoder": "embedding", "embedding_size": 64}},
    "optimiser": {"learning_rate": 2e-3},
    "schedule": {"name": "plateau", "factor": 0.5},
    "budget": {"updates": "none", "epochs": 1},
    "evaluation": {"every": 1000, "batches": 50, "batch_size": 16},
}
_SERIES: Values = {
    "task": {"batch_size": 16},
    "model": {"options": {"hidden_size": 64}},
    "optimiser": {"learning_rate": 2e-3},
    "budget": {"updates": 2000, "patience": 10},
    "evaluation": {"every": 100, "batches": 0, "batch_size": 1},
}
_WORDS: Values = {
    "task": {"batch_size": 20},
    "model": {
        "options": {"encoder": "embedding", "embedding_size": 200, "hidden_size": 200, "tied": True, "dropout": 0.4}
    },
    "optimiser": {"name": "sgd", "learning_rate": 20.0},
    "schedule": {"name": "plateau", "factor": 0.25},
    "loop": {"clip_norm": 0.25},
    "budget": {"updates": "none", "epochs": 6},
    "evaluation": {"every": 1000, "batches": 100, "batch_size": 10},
}
_BINARY: Values = {
    "task": {"batch_size": 50},
    "optimiser": {"name": "rmsprop", "learning_rate": 5e-3, "smoothing": 0.9},
    "loop": {"clip_norm": 0.25},
    "budget": {"updates": 5000, "patience": 5},
    "evaluation": {"every": 200, "batches": 4, "batch_size": 100},
}

_TASKS: dict[str, Values] = {
    "copy": _RECALL,
    "denoise": _RECALL,
    "adding": {"task": {"batch_size": 50}, "budget": {"updates": 10_000}},
    "pixel-mnist": {
        "task": {"batch_size": 100},
        "model": {"options": {"hidden_size": 100}},
        "budget": {"updates": "none", "epochs": 10},
        "evaluation": {"every": 500, "batches": 20, "batch_size": 100, "metric": "accuracy"},
    },
    "ptb-char": _TEXT,
    "text8": _TEXT,
    "wikitext2-char": _TEXT,
    "text": _TEXT,
    "sequence": _TEXT,
    "series": _SERIES,
    "ptb-word": _WORDS,
    "wikitext2-word": _WORDS,
    "binary-power-law": _BINARY,
    "repetitive": _BINARY,
    "ising": _BINARY,
    "hidden-markov": _BINARY,
}

# Tables 6 and 7 of Kerg et al. 2020 where they worked. Those of RelRNN and RelLSTM were found here: the rate counts for
# most; on Denoise a cell that forgets leaves keeping to the memory, on Copy it does harm (docs/results-training.md).
_REL_RNN = {"nonlinearity": "tanh", "recurrent_init": "random"}
_DENOISE = {"recent": 15, "relevant": 15}
_MODELS: dict[tuple[str, str], Values] = {
    ("copy", "RelRNN"): {"model": {"options": _REL_RNN}, "optimiser": {"learning_rate": 2e-3}},
    ("denoise", "RelRNN"): {"model": {"options": {**_REL_RNN, **_DENOISE}}, "optimiser": {"learning_rate": 2e-3}},
    ("copy", "RelLSTM"): {"optimiser": {"learning_rate": 3e-3}},
    ("denoise", "RelLSTM"): {
        "model": {"options": {"forget_bias": -8, **_DENOISE}},
        "optimiser": {"learning_rate": 3e-3},
    },
    ("copy", "HDetachLSTM"): {"model": {"options": {"p": 0.5}}},
    ("denoise", "HDetachLSTM"): {"model": {"options": {"p": 0.5}}},
    ("copy", "OrthRNN"): {"optimiser": {"name": "rmsprop", "learning_rate": 2e-4}},
    ("denoise", "OrthRNN"): {"optimiser": {"name": "rmsprop", "learning_rate": 2e-4}},
    ("copy", "ExpRNN"): {"optimiser": {"name": "rmsprop", "learning_rate": 2e-4}},
    ("denoise", "ExpRNN"): {"optimiser": {"name": "rmsprop", "learning_rate": 2e-4}},
    ("denoise", "GORU"): {"optimiser": {"name": "rmsprop", "learning_rate": 1e-3, "smoothing": 0.9}},
}

_COMPARED_RECALL: Values = {
    "budget": {"updates": 8000},
    "evaluation": {"every": 250},
    "curriculum": {"start": 10, "accuracy": 0.9},
}
_COMPARED: dict[str, Values] = {"copy": _COMPARED_RECALL, "denoise": _COMPARED_RECALL}


def recipe(task: str, model: str) -> RunConfig:
    """A sensible default configuration for a task and a model.

    Args:
        task: any name; one that is not known here, such as a user's own, gets the general settings.
        model: one of :func:`remanence.nn.list_models`; of a wrong name the nearest is proposed.

    Example:
        >>> recipe("denoise", "RelRNN").model.options["recent"]
        15
    """
    one_of("model", model, [info.name for info in list_models()])
    config = config_from({"task": {"name": task}, "model": {"name": model}})
    config = config_from(_TASKS.get(task, {}), config)
    return config_from(_MODELS.get((task, model), {}), config)


def comparison_recipe(task: str, model: str) -> RunConfig:
    """A configuration for a comparison that takes minutes, with a curriculum where that helps.

    It is the :func:`recipe`; for copy and denoise with 8,000 updates instead of 20,000 and a curriculum from length 10.

    Example:
        >>> comparison_recipe("copy", "LSTM").curriculum.start, comparison_recipe("adding", "LSTM").curriculum.start
        (10, None)
    """
    return config_from(_COMPARED.get(task, {}), recipe(task, model))
