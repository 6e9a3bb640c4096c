"""What is taken for a secret: by the words of its name, whoever asks."""

import pytest

from objectives.environment import check_variables
from objectives.secrets import HIDDEN, is_secret_name, redacted

SECRETS = (
    *("HF_TOKEN", "MYTOKEN", "HF_TOKEN_2", "API_KEY", "OPENAI_APIKEY", "SSH_KEY_PATH", "PASS"),
    *("AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "MYSQL_PWD", "SECRETS", "my_secret", "api-key"),
)

OTHERS = (
    *("TOKENIZERS_PARALLELISM", "TRAIN_TOKENS", "KEYBOARD", "MONKEY", "COMPASS", "BYPASS"),
    *("PWD", "OLDPWD", "PASSENGERS", "SECRETARY"),
)


@pytest.mark.parametrize("name", SECRETS)
def test_one_word_of_a_name_makes_it_a_secret_everywhere(name: str) -> None:
    assert is_secret_name(name)
    assert redacted(f"{name.upper()}=swordfish", {}) == f"{name.upper()}={HIDDEN}"
    with pytest.raises(ValueError, match="looks like a secret"):
        check_variables({name: "swordfish"})


@pytest.mark.parametrize("name", OTHERS)
def test_part_of_a_word_makes_no_secret(name: str) -> None:
    assert not is_secret_name(name)
    assert redacted(f"{name}=swordfish", {name: "swordfish"}) == f"{name}=swordfish"
    check_variables({name: "swordfish"})
