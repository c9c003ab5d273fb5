# SPDX-License-Identifier: Apache-2.0
"""Keys and configurations: every change of a kernel changes its key, and no other change does."""

from pathlib import Path

import pytest

from hourglass import resources
from hourglass.builders.kernel import config
from hourglass.builders.kernel.recipe import Recipe
from hourglass.errors import InputError


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the repository's kernel/ folder with a small one."""
    for name, text in {
        "config/common.config": "CONFIG_A=y\n# CONFIG_B is not set\n",
        "config/6.1.config": "CONFIG_B=y\n",
        "config/kunit.config": "CONFIG_HOURGLASS_WIRE_KUNIT_TEST=y\n",
        "drivers/wire.c": "int x;\n",
        "hooks/tsq.toml": "name = 'tsq'\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "tests").mkdir()
    monkeypatch.setattr(resources, "KERNEL", tmp_path)
    return tmp_path


def test_the_key_is_stable_and_follows_every_ingredient(kernel: Path) -> None:
    recipe = Recipe("6.1", "linux-source-6.1 1", (6, 1))
    keys = [recipe.key()]
    (kernel / "hooks/README.md").write_text("for people")
    (kernel / "config/5.10.config").write_text("CONFIG_C=y\n")
    assert recipe.key() == keys[0]
    keys += [
        Recipe("6.1", "linux-source-6.1 2", (6, 1)).key(),
        Recipe("6.1", "linux-source-6.1 1", (6, 1), variant="kunit").key(),
        Recipe("6.1", "linux-source-6.1 1", (6, 1), without=("tsq",)).key(),
        Recipe("6.1", "linux-source-6.1 1", (5, 10)).key(),
    ]
    for name in ("drivers/wire.c", "hooks/tsq.toml", "config/common.config", "config/6.1.config"):
        (kernel / name).write_text("something else")
        keys.append(recipe.key())
    assert len(set(keys)) == len(keys)


def test_only_kernels_that_compile_tests_have_them_in_their_keys(kernel: Path) -> None:
    plain, kunit = (Recipe("6.1", "linux-source-6.1 1", (6, 1), variant) for variant in (None, "kunit"))
    before = plain.key(), kunit.key()
    (kernel / "tests/wire_test.c").write_text("int t;\n")
    assert plain.key() == before[0]
    assert kunit.key() != before[1]


def test_the_key_of_the_ingredients_covers_only_the_kernel_folder(kernel: Path) -> None:
    recipe = Recipe("6.1", "linux-source-6.1 1", (6, 1))
    before = recipe.ingredients_key()
    (kernel / "tuning").mkdir()
    (kernel / "tuning/objects").write_text("net/core/dev.o\n")
    assert Recipe("mine", "tree 2", (6, 1)).ingredients_key() == before
    assert Recipe("6.1", "linux-source-6.1 1", (6, 1), "kunit").ingredients_key() != before
    (kernel / "drivers/wire.c").write_text("int x, y;\n")
    assert recipe.ingredients_key() != before


def test_the_name_of_a_kernel_does_not_enter_its_key(kernel: Path) -> None:
    assert Recipe("mine", "tree 1", (6, 1)).key() == Recipe("yours", "tree 1", (6, 1)).key()


def test_variants_have_different_labels() -> None:
    assert Recipe("6.1", "", (6, 1), "kunit", ("tsq",)).label == "6.1+kunit+no-tsq"


def test_an_unknown_variant_names_the_known_ones(kernel: Path) -> None:
    with pytest.raises(InputError, match="kunit"):
        Recipe("6.1", "", (6, 1), "kasan").key()


def test_a_version_without_a_fragment_uses_the_one_before(kernel: Path) -> None:
    def names(*version: int) -> list[str]:
        return [path.name for path in config.fragments(kernel / "config", (version[0], version[1]), None)]

    (kernel / "config/6.12.config").write_text("CONFIG_A=y\n")
    assert names(6, 1) == names(6, 11) == ["common.config", "6.1.config"]
    assert names(6, 12) == names(7, 0) == ["common.config", "6.12.config"]
    assert names(5, 15) == ["common.config"]


def test_later_fragments_take_precedence_and_losses_are_named(kernel: Path) -> None:
    merged = config.merge(config.fragments(kernel / "config", (6, 1), None))
    assert merged == {"CONFIG_A": "y", "CONFIG_B": "y"}
    assert config.parse(config.render(merged | {"CONFIG_C": "n"})) == merged | {"CONFIG_C": "n"}
    assert config.unmet(merged | {"CONFIG_C": "n"}, {"CONFIG_A": "y"}) == ["CONFIG_B=y"]
    assert config.unmet({"CONFIG_C": "n"}, {"CONFIG_C": "y"}) == ["CONFIG_C=n"]
