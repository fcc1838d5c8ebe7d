"""Writes the pages of this folder: runs the code of each and adds its verdict and picture.

``python docs/probes/make.py``. The pictures are the figures that ``plot()`` draws, as SVG.
"""

import textwrap
from pathlib import Path

import torch
from maps import section

from remanence.figures import to_svg

HERE = Path(__file__).parent

PAGES = {
    "gradient_reach": (
        "How far back does the gradient reach?",
        """
model = torch.nn.LSTM(4, 32)
result = probes.gradient_reach(model, torch.randn(300, 8, 4))
""",
        """
One forward and one backward pass give the norm of dL/dh_t for every step. Hidden states are found in the layers of
this library (also in the fused kernel), in torch's `RNN`, `LSTM` and `GRU`, and in torch's cells, wherever they sit
inside the model. In any other model the gradient is taken with respect to the input, or to the embedding of tokens;
`through="inputs"` asks for this explicitly. The default loss is the sum of the last step's outputs, with random signs
where that sum is constant, as after a LayerNorm. Give your own as `loss(output, batch)`.

The verdict starts with distances in steps: the farthest step at which half, and a hundredth, of the gradient at the
last step is left. If every earlier step has a small share of about the same size, as under attention that is spread
evenly, the verdict says that all steps are seen, but faintly. A gap in the middle is named. A gradient below the
rounding error of the model (1e-7 of the gradient at the last step in float32) changes no sum that it enters and counts
as noise. `result.steps_left(0.1)` gives the distance for any other share.

An exponential and a power law are fitted to the log norms, and Akaike's criterion chooses between them. The interval
comes from a block bootstrap, because neighbouring norms are not independent. The gradient counts as *stable* while
its change over the run is below a factor of 1,000; if the change is above a factor of 10, the verdict gives it. No law
is named if the interval of its slope includes 0. A gradient that is exactly zero beyond a distance is *cut off*, as
with truncated backpropagation. The probe needs the memory of an ordinary backward pass.
""",
    ),
    "perturbation_reach": (
        "How far back does a change matter?",
        """
model = torch.nn.LSTM(4, 32)
result = probes.perturbation_reach(model, torch.randn(300, 8, 4))
""",
        """
The probe changes one step at a time and compares the last output with the original. It needs no gradient, so it also
works on sampled, rounded or compiled models. A token is replaced by another token of the batch. A step of numbers is
moved by the difference of two steps of the batch, the same at all distances. Not every distance is tried, but none
with an effect is missed: the steps between two distances are changed together, and a step that matters is searched
for by bisection. So is the distance at which half, and a hundredth, of the effect is left. Where the inputs are tokens
and the output has a class for each token, the change is measured as the total variation between the two distributions
(0: equal, 1: disjoint); otherwise as the norm of the difference. `floor` is the change that rounding alone causes.

A gradient describes small changes, this probe real ones. The two differ where a model saturates, or where it attends
to a token because of its identity.
""",
    ),
    "context_use": (
        "How many tokens of context does a language model use?",
        """
from remanence.testing import MarkovModel

chain = torch.full((4, 4), 0.1) + 0.6 * torch.eye(4)  # a token repeats the one four before it, mostly
model = MarkovModel(chain, order=4)
result = probes.context_use(model, model.sample(64, 200))
""",
        """
The same tokens are predicted with 1, 2, 4, ... tokens of context, and the cross-entropy is given in nats per token.
This shows what more context is worth. If few tokens are enough (up to 32), their exact number is searched for by
bisection. `result.enough(0.01)` is the context length beyond which the gain is at most
0.01 nats. The intervals are those of the difference from the longest context, token by token, so they are narrower
than those of the losses. Give real sequences: random tokens contain no structure to use.
""",
    ),
    "attention_map": (
        "What does the model attend to?",
        """
from remanence.nn import RelLSTM

model = RelLSTM(4, 16, recent=5, relevant=5)
with torch.no_grad():
    model.weight_score_l0 *= 30  # sharp attention, so that states are replaced
result = probes.attention_map(model, torch.randn(60, 1, 4))
""",
        """
Rows are readers, columns are the steps that they read. Several rows of a batch and several heads are averaged. The
probe sees the memories of this library, torch's `MultiheadAttention`, and every call of
`scaled_dot_product_attention`. `occupancy` is how full the relevant set was at every step, `replacements` how often a
state displaced another, and `kappa` the largest number of states that one step read. With `relevant=0` the map is a
band.
""",
    ),
    "dependency_depth": (
        "How many reads and Jacobians lie between two steps?",
        """
from remanence.nn import RelRNN

attention = probes.attention_map(RelRNN(4, 16, recent=5, relevant=5), torch.randn(80, 1, 4))
result = probes.dependency_depth(attention, threshold=1e-3)
""",
        """
The depth of a step is the smallest number of Jacobians on any path from h_t to the last macro-state whose attention
weights multiply to at least the threshold; recurrent edges have weight 1. The search is exact and visits steps in the
order of their depth, so sparse attention takes near-linear time. `result.bound(eigenvalue)` gives `lambda^d
kappa^-(d+1)`, the lower bound of Theorem 2 of Kerg et al. 2020 with its constants, and `result.plot_beside(reach,
eigenvalue)` plots it together with a measured gradient. The bound is proved for linear cells with uniform attention.
It proves nothing about trained networks, and a lower bound never proves stability. For long sequences, pass the trace
of a layer instead of a matrix: `dependency_depth((trace.steps[:, 0], trace.weights[:, 0]))`.
""",
    ),
    "gradient_paths": (
        "Which ways does the gradient take?",
        """
from remanence.nn import MemRNN

result = probes.gradient_paths(MemRNN(4, 16), torch.randn(20, 1, 4), t=3, k=12)
""",
        """
This is Proposition 1 of Kerg et al. 2020 on a real layer. ds_{t+k}/dh_t is split by the number of Jacobians on the
path, using closed forms of the partial derivatives; the parts sum to autograd's result up to rounding. The probe
supports RNN and GRU cells without a memory, or with a full or screened memory and the additive score. A GRU with a
memory carries h as well as s, so its macro-state is the pair; `leak="s"` is for a GRU whose leak carries s, where s
alone is the macro-state.
""",
    ),
    "cost": (
        "What does it cost as sequences grow?",
        """
from remanence.nn import MemRNN

result = probes.cost(MemRNN(4, 8, backend="reference"), [32, 64, 128, 256])
""",
        """
The probe measures seconds of a forward and a backward pass, the peak bytes of live tensors, the bytes of the carried
state, and the floating-point operations of the matrix products. It fits `a + b T + c T^2` to each, without negative
terms and with relative errors; a log-log slope alone would take a small quadratic term for a linear one.
Time is processor time, the best of several runs. On a busy machine it scatters: if more than one order of growth fits,
or if time does not grow like the counted operations, the verdict is "too noisy to say". Memory is called quadratic only
if the bytes of all tensors together are, because a peak that moves from one tensor to another bends without growing so.

`as_declared` compares the measurements with what the layers declare: the state with `initial_state`, operations (within
a factor of two) with the formulas of `remanence.theory`, and time by whether it grows no faster than those operations.
The state of a full memory grows although it is declared empty, and the verdict says so. Operations are counted on the
reference path, because a fused kernel would hide them. Models without matrix products have none to count.
""",
    ),
    "tradeoff": (
        "Which model keeps most gradient for its memory?",
        """
from remanence.nn import LSTM, MemLSTM, RelLSTM

models = {"LSTM": LSTM(4, 16), "MemLSTM": MemLSTM(4, 16), "RelLSTM": RelLSTM(4, 16)}
result = probes.tradeoff(models, [50, 100, 150], torch.randn(50, 2, 4))
""",
        """
Mean log gradient norm against peak memory for several models and lengths, as in figure 2 (right) of Kerg et al. 2020.
Norms that are exactly zero are left out of the mean, not counted as one. If the sequences of a task must not be cut,
pass a batch for every length: `tradeoff(models, lengths, lambda length: task.with_length(length).batch(0, 8), loss)`.
Results of trained models are in [](../tables/index.md).
""",
    ),
    "stability": (
        "Does the recurrence contract, and how fast does it forget?",
        """
from remanence.nn import StableRNN

result = probes.stability(StableRNN(4, 16, contraction=0.9), torch.randn(200, 2, 4))
""",
        """
A contraction factor is *proved* where the weights allow it: by the layer's own `certificate()`, or by the spectral
norm of a tanh recurrence. The largest Lyapunov exponent is *estimated* along the given run: by power iteration with
the Jacobians, if the model's only memory is one recurrent layer; otherwise from the decay of the gradient (memories,
stacks, strides, attention over the states). Then `interval` gives 95 % of it, and the verdict is "too noisy to say" if
the interval includes 0. A model "holds" if a small difference changes by less than a factor e over the whole run. If
the gradient is exactly zero beyond a distance, as in a convolution, `horizon` is that distance.
`window_by_lemma` is the truncation length that keeps outputs within epsilon by Lemma 1 of Miller and Hardt 2018.
`window_measured` is the shortest that does so on the given run; it is `None` if only the whole run does, and never
longer than `window_by_lemma`.
""",
    ),
    "truncation_gap": (
        "What is lost when the model sees only the last k steps?",
        """
windows = [1, 2, 4, 8, 16, 32, 64]
result = probes.truncation_gap(torch.nn.LSTM(4, 16), torch.randn(200, 4, 4), windows, ends=4)
""",
        """
The model runs on whole sequences, and on windows that start from its empty state. The probe compares outputs, losses
and parameter gradients at the last step of every window. With targets and a cross-entropy as `loss(output_t,
target_t)`, `loss` is the loss against context length.
""",
    ),
    "memory_demand": (
        "Does this task need memory at all?",
        """
from remanence.tasks import Copy

result = probes.memory_demand(Copy(20))
""",
        """
The accuracy of the best predictor that sees only the present input, compared with chance and with a model's accuracy.
Where inputs and targets are classes, it is counted on the task's own data (the most frequent answer for every token);
otherwise it is what the task states.
""",
    ),
    "mutual_information": (
        "How far apart do symbols carry information about each other?",
        """
from remanence.tasks import BinaryPowerLaw

task = BinaryPowerLaw(length=512)  # I = 0.1 lag^-0.4
bits = task.draw(2000, task.stream("train", seed=0)).T  # one sequence in each row
result = probes.mutual_information(bits, probes.logarithmic_lags(500))
""",
        """
Pairs of symbols are counted at each lag over all positions and sequences; their mutual information follows from three
entropies. The estimator of Shen 2019 replaces ln n by psi(n). `estimator` also offers Grassberger's better G(n), the
plug-in estimate, and its Miller-Madow correction. For two symbols psi is exactly as biased as plug-in, by 1 / 2N; for
27 symbols and 5,000 pairs plug-in reads 0.07 nats where there are none, psi 0.0001.

`sequence` may be bytes, a text (`unit="characters"` or `"words"`), integers `(L,)` or `(S, L)`, a list of any of
these, a path, or the result of `read_symbols` on a file (`.npy`, FASTA, UTF-8 text, bytes). Up to 256 symbols are
counted in the compiled kernel, directly from the file if it holds bytes. Tens of thousands of words are sorted and
need no table of all pairs.

The kernel counts 3.0e9 pairs of 64 symbols a second with two threads, 13 times as many as `numpy.bincount` in the
same run, on two cores of an EPYC with AVX2; 3.9e9, 19 times as many, on a Xeon. On a text of 74 MB, 54 lags up to
10,000 with floor and intervals take 2 s as bytes, 3 s as characters and 38 s as 213,000 different words (`python -m
benchmarks.information`). In addition to the mapped file, bytes need 130 MB for the tables at any file size, and
characters one byte each.

`floor` is the estimate for pairs with the same marginals and no dependence. `low` and `high` are a 95 % interval: the
estimate and Student's t times its standard error, from a jackknife over groups, which are whole sequences or
stretches of a single long one. `result.fit()` chooses an exponential (`correlation_length`), a power law (`exponent`)
or a constant by Akaike's criterion, from the lags above the floor, weighted by their errors and the scatter about the
law. `result.regimes()` finds ranges that follow different laws. The curve covers pairs only: two distant symbols may
depend on each other only together with others.
""",
    ),
}


def main():
    for name, (question, code, words) in PAGES.items():
        torch.manual_seed(0)
        scope = {}
        code = f"import torch\nfrom remanence import probes\n{code.rstrip()}"
        exec(code, scope)
        (HERE / f"{name}.svg").write_text(to_svg(*scope["result"].figures()), encoding="utf-8")
        verdict = textwrap.fill(scope["result"].verdict, 90, initial_indent="# ", subsequent_indent="# ")
        shown = f"{code}\nprint(result.verdict)\n{verdict}"
        page = f"# {question}\n\n```python\n{shown}\n```\n\n![{question}]({name}.svg)\n\n{words.strip()}\n"
        page += f"\n{section()}\n" if name == "attention_map" else ""
        (HERE / f"{name}.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
