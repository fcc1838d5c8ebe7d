"""Every policy again, one head and one token at a time: a full cache, of which only the held positions are seen.

Nothing of `remanence.kv` is used here.
"""

from __future__ import annotations

import torch

NAME = "slow_screens"


class SlowPolicy:
    """Which positions each layer, row and key head holds; an attention function fills it."""

    def __init__(self, screen, budget, recent, sinks, chunk, padding):
        self.screen, self.budget, self.recent, self.sinks, self.chunk = screen, budget, recent, sinks, chunk
        self.padding = padding
        self.held = {}
        self.score = {}
        self.seen = {}
        self.let_go = 0

    def attention(self, module, query, key, value, attention_mask, scaling=None, **_):
        scaling = scaling or query.shape[-1] ** -0.5
        layer, new = module.layer_idx, query.shape[2]
        before = key.shape[2] - new
        rows, heads, key_heads = len(query), query.shape[1], key.shape[1]
        output = torch.zeros(rows, new, heads, value.shape[-1], dtype=value.dtype)
        at = before
        while at < before + new:
            end = min(before + new, at + self.part(layer, before + new - at))
            weights = {}
            for row in range(rows):
                for head in range(key_heads):
                    slots = self.held.setdefault((layer, row, head), []) + list(range(at, end))
                    self.held[layer, row, head] = slots
                    shared = range(head * heads // key_heads, (head + 1) * heads // key_heads)
                    for t in range(at, end):
                        weights[row, head, t] = self.look(
                            row, shared, t, before, query, key, value, slots, scaling, output
                        )
            for row in range(rows):
                for head in range(key_heads):
                    self.judge(layer, row, head, range(at, end), weights, key_heads)
                    self.drop(layer, row, head, end - 1, value)
            at = end
        return output, None

    def part(self, layer, left):
        """As documented: all if nothing has to go, else first what fits, then `chunk` after `chunk`."""
        room = self.budget - len(self.held.get((layer, 0, 0), []))
        if left <= room + 1:
            return left
        return room or self.chunk

    def look(self, row, shared, t, before, query, key, value, slots, scaling, output):
        """One token's attention; returns weight by position, the mean over the query heads that share the keys."""
        seen = [p for p in slots if self.padding[row] <= p <= t]
        mean = dict.fromkeys(seen, 0.0)
        if not seen or t < self.padding[row]:
            return {}
        for head in shared:
            mine = head * key.shape[1] // query.shape[1]
            products = torch.stack([query[row, head, t - before] @ key[row, mine, p] for p in seen]) * scaling
            weights = products.softmax(0)
            output[row, t - before, head] = sum(w * value[row, mine, p] for w, p in zip(weights, seen, strict=True))
            for w, p in zip(weights.tolist(), seen, strict=True):
                mean[p] += w / len(shared)
        return mean

    def judge(self, layer, row, head, queries, weights, key_heads):
        for p in self.held[layer, row, head]:
            where = (layer, row, head, p)
            if self.screen == "tova":
                last = queries[-1]
                heads = [weights[row, other, last].get(p, 0.0) for other in range(key_heads)]
                self.score[where] = sum(heads) / key_heads
                continue
            for t in queries:
                if self.screen in ("h2o", "mean") or t - p < self.recent:
                    self.score[where] = self.score.get(where, 0.0) + weights[row, head, t].get(p, 0.0)

    def rank(self, layer, row, head, p, t, value):
        if p < self.padding[row]:
            return float("-inf")
        if t - p < self.recent or p - self.padding[row] < self.sinks:
            return float("inf")
        score = self.score.get((layer, row, head, p), 0.0)
        known = {"window": p, "mean": score / (t - p + 1), "value": score * float(value[row, head, p].norm())}
        return known.get(self.screen, score)

    def drop(self, layer, row, head, t, value):
        """The least go; of equals, the youngest."""
        slots = self.held[layer, row, head]
        order = sorted(slots, key=lambda p: (-self.rank(layer, row, head, p, t, value), p))
        self.let_go += max(0, len(slots) - self.budget)
        self.held[layer, row, head] = sorted(order[: self.budget])
