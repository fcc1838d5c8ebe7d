"""Settings of Copy and Denoise: Tables 6 and 7, and the authors' code where the paper is silent."""

from __future__ import annotations

from remanence.experiments._declaring import but, options
from remanence.experiments._experiment import Setting

CODE = "authors' code, copytask.py and denoisetask.py"
OURS = "ours: how a run is watched, and when it is over"
UNLISTED = "not in the paper: as for RelRNN"
SAB_CODE = "authors' code of SAB"
RNN_CODE = "code of nnRNN, which shares an author"

COMMON: tuple[Setting, ...] = (
    Setting("task.batch_size", 10, CODE),
    Setting("model.options.hidden_size", 128, CODE),
    Setting("loop.clip_norm", 1.0, CODE),
    Setting("budget.updates", 200_000, CODE),
    Setting("budget.accuracy", 0.99, OURS),
    Setting("budget.hold", 20, OURS),
    Setting("evaluation.every", 500, OURS),
    Setting("evaluation.batches", 1, OURS),
    Setting("evaluation.batch_size", 100, OURS),
    Setting("loop.log_every", 500, OURS),
    Setting("loop.save_every", 2000, OURS),
)


def _optimiser(name: str, rate: float, source: str) -> tuple[Setting, ...]:
    return (Setting("optimiser.name", name, source), Setting("optimiser.learning_rate", rate, source))


TABLE = {"copy": "Table 6", "denoise": "Table 7"}
# Linear maps of the authors' RNN: the input's has a bias, the state's has none. Their gates read both by one map.
DRAWN = {
    "copy": options("authors' code", init="xavier", bias="single"),
    "denoise": options("authors' code", init="kaiming", bias="single"),
}
GATED = options("authors' code", init="xavier", bias="single")
HALF = options("authors' code: s = (h + r)/2, and the answer is read from h", combine="half", output="hidden")
SIZES = options("Tables 6 and 7", recent=10, relevant=10)
ORTHOGONAL = (
    *options("Tables 6 and 7", nonlinearity="modrelu"),
    *options("authors' code", recurrent_init="henaff"),
)
SAB = (
    *_optimiser("adam", 1e-3, SAB_CODE),
    *options("section 5.1: every 10 steps", every=10),
    *options(f"{SAB_CODE}, defaults", top_k=10, truncate=10),
    *options(SAB_CODE, score="tanh", normalise=True, underfull="raw", start="zero", output="summary"),
)
GORU = (*_optimiser("rmsprop", 1e-3, "Table 7"), Setting("optimiser.smoothing", 0.9, "authors' code of GORU"))
RNN = (
    *_optimiser("rmsprop", 1e-3, RNN_CODE),
    Setting("optimiser.smoothing", 0.9, RNN_CODE),
    *options(RNN_CODE, recurrent_init="xavier"),
)
H_DETACH_CODE = "authors' code of h-detach: the paper names no settings for it, and its own code has no such model"
H_DETACH = (
    *_optimiser("adam", 1e-3, H_DETACH_CODE),
    *options(H_DETACH_CODE, p=0.5),
    Setting("task.batch_size", 100, H_DETACH_CODE),
    Setting("budget.updates", 600_000, H_DETACH_CODE),
)


def _h_detach(task: str) -> tuple[Setting, ...]:
    """Its own code has Copy and not Denoise."""
    if task == "copy":
        return (*H_DETACH, Setting("task.options.encoding", "scalar", H_DETACH_CODE))
    return H_DETACH


def _attentive(task: str, source: str) -> tuple[Setting, ...]:
    """RelRNN and MemRNN: tanh and Adam on Copy, modReLU and RMSprop on Denoise."""
    name, nonlinearity = {"copy": ("adam", "tanh"), "denoise": ("rmsprop", "modrelu")}[task]
    initial = options("authors' code", recurrent_init="henaff")
    choices = (*_optimiser(name, 2e-4, source), *options(source, nonlinearity=nonlinearity))
    return (*choices, *initial, *DRAWN[task], *HALF)


def _rel_lstm(task: str) -> tuple[Setting, ...]:
    """Not in Tables 6 and 7, so the sizes are the defaults of the authors' code: larger than those of RelRNN."""
    if task == "copy":
        sizes = options("authors' code", recent=10, relevant=15)
        return (*_optimiser("adam", 2e-4, "Table 6, row of RelRNN"), *GATED, *HALF, *sizes)
    sizes = options("authors' code", recent=15, relevant=15)
    gates = (*GATED, *options("authors' code", forget_bias=0))
    return (*_optimiser("rmsprop", 1e-3, "authors' code, README"), *gates, *HALF, *sizes)


def model_settings(task: str, model: str) -> tuple[Setting, ...]:
    """Settings of one model of Tables 1, 2 or 5, or RNN, on ``"copy"`` or ``"denoise"``.

    Example:
        >>> [setting.value for setting in model_settings("copy", "LSTM")]
        ['adam', 0.0002, 'xavier', 'single']
    """
    if model == "RelRNN":
        return (*_attentive(task, TABLE[task]), *SIZES)
    if model == "MemRNN":
        return _attentive(task, UNLISTED)
    if model == "RelLSTM":
        return _rel_lstm(task)
    if model in ("OrthRNN", "ExpRNN"):
        settings = (*_optimiser("rmsprop", 2e-4, TABLE[task]), *ORTHOGONAL, *DRAWN[task])
        if model == "OrthRNN":
            return settings
        return (*settings, Setting("optimiser.orthogonal_learning_rate", 2e-5, "authors' code of expRNN: a tenth"))
    if model == "HDetachLSTM":
        return _h_detach(task)
    others = {"LSTM": (*_optimiser("adam", 2e-4, TABLE[task]), *GATED), "SABLSTM": SAB, "GORU": GORU, "RNN": RNN}
    return others[model]


def recall_settings(task: str, model: str, length: int) -> tuple[Setting, ...]:
    """All settings of a run at one length.

    Example:
        >>> recall_settings("denoise", "GORU", 300)[1].value
        300
    """
    task_settings = (Setting("task.name", task, "the table"), Setting("task.options.length", length, "the table"))
    shared = (*task_settings, Setting("model.name", model, "the table"), *COMMON)
    return but(shared, *model_settings(task, model))
