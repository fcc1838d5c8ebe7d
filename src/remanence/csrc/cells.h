// One step of each cell for one row, forward and backward. All rows are padded to np; padding stays zero.

template <class T> struct CellStep {
  T *planes;        // (planes, np): sums in, activations out
  T *c;             // LSTM: previous cell in, new cell out
  const T *leak;    // GRU, GORU: what the update gate lets through
  T *h;             // out; LSTM: null if it is not wanted
};

template <class T> static Vec<T> activate(int nonlinearity, Vec<T> z, Vec<T> bias) {
  if (nonlinearity == TANH) return tanh<T>(z);
  if (nonlinearity == RELU) return z < 0 ? Vec<T>{} : z;
  if (nonlinearity == MODRELU) return modrelu<T>(z, bias);
  return z;
}

template <class T> static void rnn_forward(const Spec &spec, const T *bias, Index np, const CellStep<T> &step) {
  for (Index j = 0; j < np; j += WIDTH<T>) {
    Vec<T> h = activate<T>(spec.nonlinearity, load(step.planes + j), load(bias + j));
    store(step.planes + j, h);
    store(step.h + j, h);
  }
}

template <class T> static void lstm_forward(Index np, const CellStep<T> &step) {
  T *pi = step.planes, *pf = pi + np, *pg = pf + np, *po = pg + np;
  for (Index j = 0; j < np; j += WIDTH<T>) {
    Vec<T> i = sigmoid<T>(load(pi + j)), f = sigmoid<T>(load(pf + j));
    Vec<T> g = tanh<T>(load(pg + j)), o = sigmoid<T>(load(po + j));
    Vec<T> c = f * load(step.c + j) + i * g;
    store(pi + j, i), store(pf + j, f), store(pg + j, g), store(po + j, o);
    store(step.c + j, c);
  }
  // A loop of its own: behind the sum its tanh would have to wait for the gates.
  for (Index j = 0; step.h && j < np; j += WIDTH<T>) store(step.h + j, load(po + j) * tanh<T>(load(step.c + j)));
}

// GRU and GORU: h = (1 - z) candidate + z leak, candidate = f(x part + r * s part).
template <class T> static void gated_forward(const Spec &spec, const T *bias, Index np, const CellStep<T> &step) {
  T *pn = step.planes, *pr = pn + np, *pz = pr + np, *ps = pz + np;
  int nonlinearity = spec.cell == GRU ? TANH : MODRELU;
  for (Index j = 0; j < np; j += WIDTH<T>) {
    Vec<T> r = sigmoid<T>(load(pr + j)), z = sigmoid<T>(load(pz + j));
    Vec<T> candidate = activate<T>(nonlinearity, load(pn + j) + r * load(ps + j), load(bias + j));
    store(pn + j, candidate), store(pr + j, r), store(pz + j, z);
    store(step.h + j, (T(1) - z) * candidate + z * load(step.leak + j));
  }
}

template <class T> static void cell_forward(const Spec &spec, const T *bias, Index np, const CellStep<T> &step) {
  if (spec.cell == LSTM) return lstm_forward(np, step);
  if (spec.cell == RNN) return rnn_forward(spec, bias, np, step);
  gated_forward(spec, bias, np, step);
}

template <class T> struct CellBack {
  const T *planes;       // activations of the forward step
  const T *c, *c_before; // LSTM
  const T *leak;         // GRU, GORU
  const T *dh;           // in
  T *dc;                 // LSTM: gradient of the new cell in, of the previous one out
  T *dleak;              // GRU, GORU: out
  T *d;                  // (planes, np) out: gradients of the sums
  T *dmodrelu;           // (np): added to
};

// Derivative of f at the sum from its value, times d; where f is modrelu its bias learns too.
template <class T> static Vec<T> activate_back(int nonlinearity, Vec<T> value, Vec<T> d, T *dbias) {
  if (nonlinearity == TANH) return d * (T(1) - value * value);
  if (nonlinearity == RELU) return value > 0 ? d : Vec<T>{};
  if (nonlinearity == IDENTITY) return d;
  store(dbias, load(dbias) + (value > 0 ? d : value < 0 ? -d : Vec<T>{}));
  return value != 0 ? d : Vec<T>{};
}

template <class T> static void rnn_backward(const Spec &spec, Index np, const CellBack<T> &step) {
  for (Index j = 0; j < np; j += WIDTH<T>)
    store(step.d + j, activate_back<T>(spec.nonlinearity, load(step.planes + j), load(step.dh + j), step.dmodrelu + j));
}

template <class T> static void lstm_backward(Index np, const CellBack<T> &step) {
  const T *pi = step.planes, *pf = pi + np, *pg = pf + np, *po = pg + np;
  T *di = step.d, *df = di + np, *dg = df + np, *d_o = dg + np;
  for (Index j = 0; j < np; j += WIDTH<T>) {
    Vec<T> i = load(pi + j), f = load(pf + j), g = load(pg + j), o = load(po + j);
    Vec<T> bent = tanh<T>(load(step.c + j)), dh = load(step.dh + j);
    Vec<T> dc = load(step.dc + j) + dh * o * (T(1) - bent * bent);
    store(di + j, dc * g * i * (T(1) - i));
    store(df + j, dc * load(step.c_before + j) * f * (T(1) - f));
    store(dg + j, dc * i * (T(1) - g * g));
    store(d_o + j, dh * bent * o * (T(1) - o));
    store(step.dc + j, dc * f);
  }
}

template <class T> static void gated_backward(const Spec &spec, Index np, const CellBack<T> &step) {
  const T *pn = step.planes, *pr = pn + np, *pz = pr + np, *ps = pz + np;
  T *dn = step.d, *dr = dn + np, *dz = dr + np, *ds = dz + np;
  int nonlinearity = spec.cell == GRU ? TANH : MODRELU;
  for (Index j = 0; j < np; j += WIDTH<T>) {
    Vec<T> candidate = load(pn + j), r = load(pr + j), z = load(pz + j), dh = load(step.dh + j);
    Vec<T> d = activate_back<T>(nonlinearity, candidate, dh * (T(1) - z), step.dmodrelu + j);
    store(dn + j, d);
    store(dr + j, d * load(ps + j) * r * (T(1) - r));
    store(ds + j, d * r);  // may stand in the place of the sum
    store(dz + j, dh * (load(step.leak + j) - candidate) * z * (T(1) - z));
    store(step.dleak + j, dh * z);
  }
}

template <class T> static void cell_backward(const Spec &spec, Index np, const CellBack<T> &step) {
  if (spec.cell == LSTM) return lstm_backward(np, step);
  if (spec.cell == RNN) return rnn_backward(spec, np, step);
  gated_backward(spec, np, step);
}
