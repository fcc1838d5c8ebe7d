"""Names of the scripts that made the older stored results: says which command runs the same tables today."""

import sys

SUCCESSORS = {
    "attention": "kerg2020/figure-1, kerg2020/figure-7, kerg2020/figure-9 to figure-11 and ke2017/figure-3",
    "binary": "shen2019/figure-1, shen2019/figure-7 and shen2019/figure-9",
    "binary-far": "beyond/long-bits",
    "dense": "kerg2020/table-3 and kerg2020/figure-8",
    "estimator": "shen2019/figure-5",
    "gradients": "kerg2020/figure-2 and kerg2020/figure-3",
    "held-out": "shen2019/figure-6",
    "language-model": "shen2019/figure-3d",
    "memory": "kerg2020/figure-2-centre",
    "minigrid": "kerg2020/table-4",
    "others": "kerg2020/table-2 and kerg2020/table-5",
    "recall": "kerg2020/table-1, kerg2020/table-2 and kerg2020/table-5",
    "wikitext2": "shen2019/figure-2 and shen2019/figure-3",
    "wikitext2-words": "shen2019/figure-2 and shen2019/figure-3",
}

if __name__ == "__main__":
    named = SUCCESSORS.get(sys.argv[1] if len(sys.argv) > 1 else "", "all tables and figures: `--list`")
    sys.exit(f"the scripts are gone; `remanence reproduce` has {named}")
