// Drawing tokens as data: what the binding hands to `generate` of a kernel. No torch, no arithmetic.
#pragma once
#include "scan.h"

namespace remanence {

// The scans have no x and a batch of 0: each step overwrites the output and the log of the one before, at row `first` on.
template <class T> struct Generation {
  const Scan<T> *layers;     // (depth): the first one reads tokens, each other one the output of the one below
  const void *const *plans;  // (depth)
  const void *ends;          // packed head and encoder, see generate.inc
  Index depth;
  Index steps;
  Index batch;
  Index tokens;            // that can be read
  Index classes;           // that can be drawn
  Index features;          // that the head reads
  const T *embedding;      // (tokens, inputs of the first layer); null: one-hot
  const T *head;           // (classes, features)
  const T *head_bias;      // (classes)
  const double *uniforms;  // (steps, batch); null: the likeliest
  double temperature;
  const int64_t *before;  // (batch): the tokens that are read first
  int64_t *drawn;         // (steps, batch)
};

}  // namespace remanence
