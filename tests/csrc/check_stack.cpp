// Generation and single steps without torch, for sanitizers: scratch full of NaN, buffers of exact size. Both must have
// the bits of the scan. Prints the cases that are wrong; the exit code is their number.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "stack_dispatch.h"

using namespace remanence;

namespace {

using Numbers = std::vector<double>;
using Steps = std::vector<int64_t>;

constexpr Index TOKENS = 6, CLASSES = 5, STEPS = 7, DEPTH = 2;

std::mt19937 engine(11);

Numbers draw(Index count, double scale) {
  std::normal_distribution<double> normal(0, scale);
  Numbers values(count);
  for (double &value : values) value = normal(engine);
  return values;
}

struct Serial {
  template <class Body> void operator()(Index count, const Body &body) const {
    for (Index i = 0; i < count; ++i) body(i, i + 1);
  }
};

struct Weights {
  Numbers ih, hh, b_ih, b_hh, query, key, score, own;
};

struct State {  // of one layer
  Numbers s, c, h, recent, recent_score, relevant, relevant_score;
  Steps relevant_step, step;
  bool operator==(const State &) const = default;
};

struct Setting {
  Spec spec;
  Index n, batch, inputs;
  Index held() const { return spec.memory != Memory::BUFFER ? 0 : spec.recent >= 0 ? spec.recent : 2; }
};

State make_state(const Setting &g, Index held, bool random) {
  auto room = [&](Index count) { return random ? draw(count, 0.3) : Numbers(count, std::nan("")); };
  Index rows = g.batch, slots = g.spec.relevant, ranked = g.spec.memory == Memory::BUFFER ? slots : 0;
  State made{room(rows * g.n),
             room(g.spec.has_c() ? rows * g.n : 0),
             room(g.spec.leaks_h() ? rows * g.n : 0),
             room(rows * held * g.n),
             room(g.spec.memory == Memory::BUFFER && g.spec.recent >= 0 ? rows * held : 0),
             room(rows * slots * g.n),
             room(rows * ranked),
             Steps(rows * slots, EMPTY),
             Steps(rows, 2)};
  return made;
}

Weights make_weights(const Setting &g, Index inputs) {
  Index gates = g.spec.blocks() * g.n, wide = g.spec.memory == Memory::BUFFER ? g.n * g.n : g.n;
  double scale = 1 / std::sqrt(double(g.n));
  return {draw(gates * inputs, 1), draw(gates * g.n, scale), draw(gates, 1),       draw(gates, 1),
          draw(wide, scale),       draw(wide, scale),        draw(g.n, 3 * scale), draw(g.n, 0.1)};
}

template <class U> U *pointer(std::vector<U> &values) { return values.empty() ? nullptr : values.data(); }

Scan<double> scan_of(const Setting &g, Index inputs, Index steps, Weights &w, State &from, State &to) {
  Scan<double> a{};
  a.spec = g.spec;
  a.steps = steps;
  a.batch = g.batch;
  a.inputs = inputs;
  a.n = g.n;
  a.np = (g.n + ALIGN - 1) / ALIGN * ALIGN;
  a.held = g.spec.memory == Memory::BUFFER ? Index(from.recent.size()) / (g.batch * g.n) : 0;
  a.capacity = g.spec.memory == Memory::BUFFER ? Index(to.recent.size()) / (g.batch * g.n) : 0;
  a.w_ih = w.ih.data();
  a.w_hh = w.hh.data();
  a.b_ih = w.b_ih.data();
  a.b_hh = w.b_hh.data();
  a.query = w.query.data();
  a.key = w.key.data();
  a.score = w.score.data();
  a.own = w.own.data();
  a.s0 = pointer(from.s);
  a.c0 = pointer(from.c);
  a.h0 = pointer(from.h);
  a.recent0 = pointer(from.recent);
  a.recent_score0 = pointer(from.recent_score);
  a.relevant0 = pointer(from.relevant);
  a.relevant_score0 = pointer(from.relevant_score);
  a.relevant_step0 = pointer(from.relevant_step);
  a.step0 = pointer(from.step);
  a.s1 = pointer(to.s);
  a.c1 = pointer(to.c);
  a.h1 = pointer(to.h);
  a.recent1 = pointer(to.recent);
  a.recent_score1 = pointer(to.recent_score);
  a.relevant1 = pointer(to.relevant);
  a.relevant_score1 = pointer(to.relevant_score);
  a.relevant_step1 = pointer(to.relevant_step);
  a.step1 = pointer(to.step);
  return a;
}

// Output and final states of the scan, layer by layer: what everything is compared with.
Numbers scan_all(const Setting &g, std::vector<Weights> &weights, std::vector<State> from, std::vector<State> &to,
                 Numbers x, Index steps) {
  for (Index i = 0; i < DEPTH; ++i) {
    Scan<double> a = scan_of(g, i ? g.n : g.inputs, steps, weights[i], from[i], to[i]);
    Numbers output(steps * g.batch * g.n, std::nan(""));
    Steps slot(steps * g.batch), displaced(steps * g.batch);
    a.x = x.data();
    a.output = output.data();
    a.log_slot = slot.data();
    a.log_displaced = displaced.data();
    run_forward(a, 2, Serial());
    x = output;
  }
  return x;
}

struct Stack {
  Setting g;
  std::vector<Weights> weights;
  std::vector<State> from;

  std::vector<State> room(Index steps) const {
    Index grown = g.held() + (g.spec.memory == Memory::BUFFER && g.spec.recent < 0 ? steps : 0);
    return std::vector<State>(DEPTH, make_state(g, grown, false));
  }
  std::vector<Scan<double>> layers(Index steps, std::vector<State> &to) {
    std::vector<Scan<double>> made;
    for (Index i = 0; i < DEPTH; ++i) made.push_back(scan_of(g, i ? g.n : g.inputs, steps, weights[i], from[i], to[i]));
    return made;
  }
};

bool step_is_right(Stack &stack) {
  const Setting &g = stack.g;
  Numbers x = draw(g.batch * g.inputs, 1), output(g.batch * g.n, std::nan(""));
  std::vector<State> expected = stack.room(1), made = stack.room(1);
  Numbers wanted = scan_all(g, stack.weights, stack.from, expected, x, 1);
  std::vector<Scan<double>> layers = stack.layers(1, made);
  run_step(layers, x.data(), output.data(), 2, Serial());
  return output == wanted && made == expected;
}

bool generation_is_right(Stack &stack, bool embeds, bool greedy) {
  const Setting &g = stack.g;
  Numbers head = draw(CLASSES * g.n, 3), embedding = draw(TOKENS * g.inputs, 1), uniforms(STEPS * g.batch);
  for (double &uniform : uniforms) uniform = std::uniform_real_distribution<double>(0, 1)(engine);
  Steps before(g.batch, TOKENS - 1), drawn(STEPS * g.batch, -1);
  std::vector<State> made = stack.room(STEPS), expected = stack.room(STEPS);
  std::vector<Scan<double>> layers = stack.layers(STEPS, made);
  Generation<double> generation{};
  generation.steps = STEPS;
  generation.batch = g.batch;
  generation.tokens = TOKENS;
  generation.classes = CLASSES;
  generation.features = g.n;
  generation.embedding = embeds ? embedding.data() : nullptr;
  generation.head = head.data();
  generation.uniforms = greedy ? nullptr : uniforms.data();
  generation.temperature = 0.7;
  generation.before = before.data();
  generation.drawn = drawn.data();
  if (!run_generate(generation, layers, 2, Serial())) return false;
  Numbers x(STEPS * g.batch * g.inputs, 0.0);
  for (Index at = 0; at < STEPS * g.batch; ++at) {
    int64_t token = at < g.batch ? before[at] : drawn[at - g.batch];
    if (token < 0 || token >= TOKENS) return false;
    for (Index j = 0; j < g.inputs; ++j) x[at * g.inputs + j] = embeds ? embedding[token * g.inputs + j] : j == token;
  }
  scan_all(g, stack.weights, stack.from, expected, x, STEPS);
  return made == expected;
}

}  // namespace

int main() {
  int wrong = 0;
  for (Index cell = 0; cell < CELLS.count; ++cell)
    for (Memory memory : {Memory::NONE, Memory::BUFFER, Memory::STRIDE})
      for (Index recent : {Index(3), Index(-1)})
        for (Index n : {1, 5, 16, 19})
          for (Index batch : {1, 3, 11}) {
            if (memory != Memory::BUFFER && recent < 0) continue;
            Setting g{};
            g.spec = {cell,
                      Nonlinearity::TANH,
                      memory,
                      memory == Memory::STRIDE ? Score::AFFINE : Score::ADDITIVE,
                      Output::MACRO,
                      recent,
                      0,
                      true,
                      false,
                      2,
                      3,
                      false,
                      true,
                      false,
                      Save::NOTHING,
                      recent >= 0};
            g.spec.relevant = memory == Memory::STRIDE ? 3 : memory == Memory::BUFFER && recent >= 0 ? 2 : 0;
            g.n = n;
            g.batch = batch;
            g.inputs = TOKENS;
            Stack stack{g, {make_weights(g, g.inputs), make_weights(g, n)}, {}};
            for (Index i = 0; i < DEPTH; ++i) stack.from.push_back(make_state(g, g.held(), true));
            bool right = step_is_right(stack) && generation_is_right(stack, true, false) &&
                         generation_is_right(stack, false, false) && generation_is_right(stack, true, true);
            if (right) continue;
            std::printf("cell %s memory %d recent %td n %td batch %td is wrong\n", CELLS[cell].name, int(memory),
                        recent, n, batch);
            ++wrong;
          }
  std::printf("%s kernels, %d wrong\n", kernels().name, wrong);
  return wrong;
}
