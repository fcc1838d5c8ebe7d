// The arithmetic of the kernel without torch, for sanitizers: random scans with scratch full of NaN, whose gradients
// are compared with differences. Prints the cases that are wrong; the exit code is their number.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "dispatch.h"

using namespace remanence;

namespace {

std::mt19937 engine(7);

std::vector<double> draw(Index count, double scale) {
  std::normal_distribution<double> normal(0, scale);
  std::vector<double> values(count);
  for (double &value : values) value = normal(engine);
  return values;
}

struct Serial {
  template <class Body> void operator()(Index count, const Body &body) const {
    for (Index i = 0; i < count; ++i) body(i, i + 1);
  }
};

// One scan with everything that it points to. A buffer's size is exact, so that a step beyond it is seen.
struct Case {
  Scan<double> a{};
  Gradients<double> g{};
  std::vector<std::vector<double>> floats;
  std::vector<std::vector<int64_t>> whole;
  std::vector<std::vector<Width>> widths;
  std::vector<double> cotangent;
  Index places = 0;  // real steps of all rows

  double *room(Index count) { return floats.emplace_back(count, std::nan("")).data(); }
  double *random(Index count, double scale) { return floats.emplace_back(draw(count, scale)).data(); }
  int64_t *steps(Index count, int64_t value) { return whole.emplace_back(count, value).data(); }
};

void give_inputs(Case &c) {
  Scan<double> &a = c.a;
  Index G = a.spec.blocks() * a.n, B = a.batch, slots = a.spec.relevant;
  double scale = 0.7 / std::sqrt(double(a.n));
  a.x = c.random(c.places * a.inputs, 1);
  a.w_ih = c.random(G * a.inputs, scale);
  a.w_hh = c.random(G * a.n, scale);
  a.b_ih = c.random(G, scale);
  a.b_hh = c.random(G, scale);
  a.own = c.random(a.n, scale);
  a.gate = c.random(a.n, 3 * scale);
  a.gate_bias = c.random(1, 1);
  Index wide = a.spec.memory == Memory::BUFFER ? a.n * a.n : a.n;
  a.query = c.random(wide, scale);
  a.key = c.random(wide, scale);
  a.score = a.spec.score == Score::DOT ? nullptr : c.random(a.n, 5 * scale);
  a.s0 = c.random(B * a.n, 0.3);
  a.c0 = c.random(B * a.n, 0.3);
  a.h0 = c.random(B * a.n, 0.3);
  a.recent0 = c.random(B * a.held * a.n, 0.3);
  a.relevant0 = c.random(B * slots * a.n, 0.3);
  a.recent_score0 = a.spec.memory == Memory::BUFFER && a.spec.recent >= 0 ? c.random(B * a.held, 0.1) : nullptr;
  a.relevant_score0 = c.random(B * slots, 0.1);
  a.relevant_step0 = c.steps(B * slots, EMPTY);
  a.step0 = c.steps(B, a.fresh ? 0 : a.spec.recent >= 0 ? 2 : a.held);
  if (a.fresh) {
    a.recent0 = nullptr;
    a.relevant0 = a.spec.memory == Memory::BUFFER ? nullptr : a.relevant0;
  }
}

// Rows of unequal length, time by time.
void pack(Case &c) {
  Scan<double> &a = c.a;
  std::vector<int64_t> lengths{9, 9, 6, 4, 4, 1, 1}, starts(a.steps);
  c.places = 0;
  for (Index t = 0; t < a.steps; ++t) {
    starts[t] = c.places;
    for (int64_t length : lengths) c.places += t < length;
  }
  a.lengths = c.whole.emplace_back(lengths).data();
  a.starts = c.whole.emplace_back(starts).data();
}

void give_room(Case &c) {
  Scan<double> &a = c.a;
  Index P = c.places, B = a.batch, np = a.np, slots = a.spec.relevant;
  a.output = c.room(P * a.n);
  a.s1 = c.room(B * a.n);
  a.c1 = c.room(B * a.n);
  a.h1 = c.room(B * a.n);
  a.recent1 = c.room(B * a.capacity * a.n);
  a.relevant1 = c.room(B * slots * a.n);
  a.recent_score1 = c.room(B * a.capacity);
  a.relevant_score1 = c.room(B * slots);
  a.relevant_step1 = c.steps(B * slots, 0);
  a.step1 = c.steps(B, 0);
  a.log_slot = c.steps(P, 0);
  a.log_displaced = c.steps(P, 0);
  a.h_hist = c.room(P * np);
  a.s_hist = a.spec.memory == Memory::NONE ? a.h_hist : c.room(P * np);
  a.c_hist = c.room(P * np);
  a.norm = c.room(a.norm_size() * P);
  a.k_hist = a.keeps_keys() ? c.room(P * np) : nullptr;
  bool lean = a.spec.save == Save::LEAN;
  a.q_hist = lean ? nullptr : c.room(P * np);
  a.gates = lean || a.spec.traits().plane_is_h ? nullptr : c.room(P * a.spec.planes() * np);
  a.wide = a.keeps_keys() ? c.widths.emplace_back(P, Width::NARROW).data() : nullptr;
}

double loss(Case &c) {
  run_forward(c.a, 2, Serial());
  double total = 0;
  for (std::size_t i = 0; i < c.cotangent.size(); ++i) total += c.cotangent[i] * c.a.output[i];
  return total;
}

// Largest relative deviation of a few entries of a gradient from central differences, the log held fixed.
double deviation(Case &c, const double *input, const double *gradient, Index count) {
  double worst = 0, step = 1e-5;
  for (Index k = 0; k < 4; ++k) {
    Index i = engine() % count;
    double &value = const_cast<double &>(input[i]), kept = value;
    value = kept + step;
    double up = loss(c);
    value = kept - step;
    double down = loss(c), difference = (up - down) / (2 * step);
    value = kept;
    worst = std::fmax(worst, std::fabs(difference - gradient[i]) / (1 + std::fabs(difference)));
  }
  return worst;
}

double check(Case &c) {
  Scan<double> &a = c.a;
  Index G = a.spec.blocks() * a.n;
  c.cotangent = draw(c.places * a.n, 1);
  loss(c);
  std::vector<int64_t> log(a.log_slot, a.log_slot + c.places);
  a.forced = log.data();
  Gradients<double> &g = c.g;
  g.output = c.cotangent.data();
  g.x = c.room(c.places * a.inputs);
  g.w_ih = c.room(G * a.inputs);
  g.w_hh = c.room(G * a.n);
  g.b_ih = c.room(G);
  g.b_hh = c.room(G);
  g.s0 = c.room(a.batch * a.n);
  Index wide = a.spec.memory == Memory::BUFFER ? a.n * a.n : a.n;
  g.key = c.room(wide);
  g.query = c.room(wide);
  g.gate = c.room(a.n);
  if (!a.fresh) {
    g.recent0 = c.room(a.batch * a.held * a.n);
    g.relevant0 = c.room(a.batch * a.spec.relevant * a.n);
  }
  loss(c);
  run_backward(a, g, 2, Serial());
  double worst = deviation(c, a.x, g.x, c.places * a.inputs);
  worst = std::fmax(worst, deviation(c, a.w_hh, g.w_hh, G * a.n));
  worst = std::fmax(worst, deviation(c, a.b_hh, g.b_hh, G));
  worst = std::fmax(worst, deviation(c, a.s0, g.s0, a.batch * a.n));
  if (a.spec.memory != Memory::NONE) worst = std::fmax(worst, deviation(c, a.key, g.key, wide));
  if (a.spec.screening().gated) worst = std::fmax(worst, deviation(c, a.gate, g.gate, a.n));
  if (a.held && !a.fresh) worst = std::fmax(worst, deviation(c, a.recent0, g.recent0, a.batch * a.held * a.n));
  return worst;
}

constexpr Index LSTM = 1;
enum Start { STARTED, FRESH, PACKED };

double check_case(Index cell, Memory memory, Index recent, Save save, Index n, Start start, Index screen) {
  Case c;
  Scan<double> &a = c.a;
  a.spec = {cell,
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
            save,
            recent >= 0,
            screen,
            5};
  a.spec.relevant = memory == Memory::STRIDE ? 3 : memory == Memory::BUFFER && recent >= 0 ? 2 : 0;
  a.steps = 9;
  a.batch = 7;
  a.inputs = 3;
  a.n = n;
  a.np = (n + ALIGN - 1) / ALIGN * ALIGN;
  a.fresh = start != STARTED;
  a.held = memory != Memory::BUFFER || (a.fresh && recent < 0) ? 0 : 3;
  a.capacity = memory != Memory::BUFFER ? 0 : recent >= 0 ? recent : a.held + a.steps;
  c.floats.reserve(100);
  c.whole.reserve(20);
  c.widths.reserve(4);
  c.places = a.steps * a.batch;
  if (start == PACKED) pack(c);
  a.large = n != 16;  // so that both ways of writing the history are taken
  give_inputs(c);
  give_room(c);
  return check(c);
}

}  // namespace

int main() {
  int wrong = 0;
  for (Index cell = 0; cell < CELLS.count; ++cell)
    for (Memory memory : {Memory::NONE, Memory::BUFFER, Memory::STRIDE})
      for (Index recent : {Index(3), Index(-1)})
        for (Save save : {Save::ALL, Save::LEAN})
          for (Index n : {1, 5, 16, 19})
            for (Start start : {STARTED, FRESH, PACKED}) {
              if ((memory != Memory::BUFFER && recent < 0) || (start != STARTED && n != 5)) continue;
              double worst = check_case(cell, memory, recent, save, n, start, 0);
              if (worst < 1e-6) continue;
              std::printf("cell %s memory %d recent %td save %d n %td start %d: %g\n", CELLS[cell].name, int(memory),
                          recent, int(save), n, start, worst);
              ++wrong;
            }
  for (Index screen = 1; screen < SCREENS.count; ++screen)
    for (Save save : {Save::ALL, Save::LEAN})
      for (Start start : {STARTED, FRESH, PACKED}) {
        double worst = check_case(LSTM, Memory::BUFFER, 3, save, 5, start, screen);
        if (worst < 1e-6) continue;
        std::printf("screen %d save %d start %d: %g\n", int(screen), int(save), start, worst);
        ++wrong;
      }
  std::printf("%s kernels, %td cells, %d wrong\n", kernels().name, CELLS.count, wrong);
  return wrong;
}
