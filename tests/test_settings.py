"""Settings: one table, four sources in order, and every mistake reported at once by name."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from foliot.domain.policy import Retry
from foliot.settings import BY_NAME, TABLE, Settings, SettingsError, format_value, load, without_password
from foliot.wiring.policies import defaults_of


def messages(environ: dict[str, str], cwd: Path, **flags: str) -> list[str]:
    with pytest.raises(SettingsError) as refused:
        load(environ, flags, cwd)
    return [f"{problem.message} {problem.hint or ''}".strip() for problem in refused.value.problems]


def test_nothing_given_gives_the_defaults(tmp_path: Path) -> None:
    settings = load({}, {}, tmp_path)
    assert settings.data_dir == tmp_path / ".foliot"
    assert (settings.host, settings.port) == ("127.0.0.1", 8700)
    assert settings.database_url is None
    assert set(settings.origins.values()) == {"default"}


def test_a_flag_beats_the_environment_beats_the_file_beats_the_default(tmp_path: Path) -> None:
    (tmp_path / "foliot.toml").write_text('port = 1\nhost = "file"\nlog_level = "debug"\n')
    settings = load({"FOLIOT_PORT": "2", "FOLIOT_HOST": "environment"}, {"port": "3", "host": None}, tmp_path)
    assert (settings.port, settings.host, settings.log_level) == (3, "environment", "debug")
    assert settings.origins["port"] == "--port"
    assert settings.origins["host"] == "FOLIOT_HOST from the environment"
    assert settings.origins["log_level"] == "foliot.toml"
    assert settings.origins["log_format"] == "default"


def test_an_unknown_name_in_the_environment_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    assert messages({"FOLIOT_DATABASE_ULR": "x"}, tmp_path) == [
        "FOLIOT_DATABASE_ULR is not a setting of Foliot. Did you mean FOLIOT_DATABASE_URL?"
    ]


def test_an_unknown_key_of_the_file_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "foliot.toml").write_text("prot = 8700\n[server]\nport = 1\n")
    assert messages({}, tmp_path) == [
        "prot is not a key of foliot.toml. Did you mean port?",
        "server is not a key of foliot.toml. `foliot settings` lists them all.",
    ]


def test_every_mistake_is_reported_at_once_with_its_source(tmp_path: Path) -> None:
    (tmp_path / "foliot.toml").write_text("log_level = 7\n")
    assert messages(
        {"FOLIOT_PORT": "abc", "FOLIOT_EGRESS_ALLOW": "10.0.0.0/8, home"}, tmp_path, port="99999"
    ) == [
        "log_level in foliot.toml is 7; it must be debug, info, warning or error.",
        (
            "FOLIOT_EGRESS_ALLOW from the environment is '10.0.0.0/8, home'; "
            "it must be networks such as 10.0.0.0/8, separated by commas, or none."
        ),
        "--port is '99999'; it must be a whole number from 0 to 65535.",
    ]
    assert messages({"FOLIOT_PORT": "abc"}, tmp_path)[-1] == (
        "FOLIOT_PORT from the environment is 'abc'; it must be a whole number from 0 to 65535."
    )


@pytest.mark.requirement("S1-ENV-3", "S1-ENV-4", "S1-ENV-5", "S2-14", "S4-34")
def test_defaults_and_pace_are_settings_and_wrong_ones_stop_the_start(tmp_path: Path) -> None:
    (tmp_path / "foliot.toml").write_text("default_retry_delays = [60, 120]\n")
    given = {"FOLIOT_DEFAULT_TIMEOUT": "300", "FOLIOT_DEFAULT_RETRIES": "2", "FOLIOT_POLL_INTERVAL": "1000"}
    settings = load(given, {}, tmp_path)
    values = defaults_of(settings)
    assert values.retry == Retry(2, delays=(timedelta(seconds=60), timedelta(seconds=120)))
    assert (values.timeout, settings.poll_interval) == (timedelta(minutes=5), 1_000)
    assert load({"FOLIOT_DEFAULT_RETRY_DELAYS": "5, 15"}, {}, tmp_path).default_retry_delays == (5, 15)
    assert messages({"FOLIOT_DEFAULT_RETRY_DELAYS": "5,soon", "FOLIOT_POLL_BATCH": "0"}, tmp_path) == [
        (
            "FOLIOT_DEFAULT_RETRY_DELAYS from the environment is '5,soon'; "
            "it must be whole numbers from 0 to 31536000, separated by commas."
        ),
        "FOLIOT_POLL_BATCH from the environment is '0'; it must be a whole number from 1 to 10000.",
    ]


@pytest.mark.parametrize("port", ["-1", "65536", "8_700", "+1", "1.0", "٨٧٠٠", "9" * 5000, "0x10"])
def test_a_port_is_plain_digits_in_range(port: str, tmp_path: Path) -> None:
    assert len(messages({"FOLIOT_PORT": port}, tmp_path)) == 1


def test_a_secret_may_come_from_a_file_whose_line_end_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("fol_abc\n")
    settings = load({"FOLIOT_API_KEY_FILE": "key"}, {}, tmp_path)
    assert settings.api_key == "fol_abc"
    assert settings.origins["api_key"] == "the file that FOLIOT_API_KEY_FILE names"


def test_a_secret_given_twice_or_in_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert messages({"FOLIOT_API_KEY": "a", "FOLIOT_API_KEY_FILE": "key"}, tmp_path) == [
        "FOLIOT_API_KEY and FOLIOT_API_KEY_FILE are both set. Keep one of them."
    ]
    assert messages({"FOLIOT_API_KEY_FILE": "absent"}, tmp_path) == [
        "FOLIOT_API_KEY_FILE names 'absent', which cannot be read: No such file or directory."
    ]


def test_only_secrets_have_a_file_variant(tmp_path: Path) -> None:
    assert "is not a setting" in messages({"FOLIOT_PORT_FILE": "x"}, tmp_path)[0]


def test_an_empty_value_counts_as_not_set(tmp_path: Path) -> None:
    assert load({"FOLIOT_PORT": "", "FOLIOT_DATABASE_URL": ""}, {}, tmp_path).port == 8700


def test_a_named_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    assert messages({"FOLIOT_CONFIG": "no.toml"}, tmp_path) == [
        f"There is no file {tmp_path / 'no.toml'}. FOLIOT_CONFIG or --config names it."
    ]


def test_a_file_that_is_not_toml_is_refused_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "foliot.toml").write_text("port 8700")
    assert "line 1" in messages({}, tmp_path)[0]


def test_paths_in_the_file_start_at_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "foliot.toml").write_text('data_dir = "data"\n')
    settings = load({"FOLIOT_CONFIG": "etc/foliot.toml"}, {}, tmp_path)
    assert settings.data_dir == tmp_path / "etc" / "data"


def test_a_wrong_secret_is_not_repeated_in_the_refusal(tmp_path: Path) -> None:
    assert "hunter2" not in messages({"FOLIOT_DATABASE_URL": "mysql://me:hunter2@here/db"}, tmp_path)[0]


def test_names_that_kubernetes_injects_get_their_own_hint(tmp_path: Path) -> None:
    injected = {
        "FOLIOT_PORT": "tcp://10.0.0.1:8700",
        "FOLIOT_PORT_8700_TCP_ADDR": "10.0.0.1",
        "FOLIOT_SERVICE_HOST": "x",
    }
    reported = messages(injected, tmp_path)
    assert len(reported) == 3
    assert all("enableServiceLinks: false" in each for each in reported)


def test_what_is_shown_holds_no_key_and_no_password(tmp_path: Path) -> None:
    settings = load(
        {"FOLIOT_API_KEY": "fol_abc", "FOLIOT_DATABASE_URL": "postgresql://me:p%40ss%2Fw@here/db"},
        {},
        tmp_path,
    )
    assert format_value(BY_NAME["api_key"], settings) == "********"
    assert format_value(BY_NAME["database_url"], settings) == "postgresql://me:********@here/db"
    assert format_value(BY_NAME["migrate_url"], settings) == ""
    assert {"p%40ss%2Fw", "p@ss/w"} < set(settings.secrets())
    for url, as_seen in (
        ("postgresql://me:p@ss/w@here/db", "postgresql://me:********@here/db"),
        ("postgresql://h/d?user=u&password=HIDDEN&x=1", "postgresql://h/d?user=u&password=********&x=1"),
        ("postgresql://h/d?sslpassword=HIDDEN", "postgresql://h/d?sslpassword=********"),
    ):
        assert without_password(url) == as_seen
    in_query = load({"FOLIOT_DATABASE_URL": "postgresql://h/d?user=u&password=HID%26DEN"}, {}, tmp_path)
    assert format_value(BY_NAME["database_url"], in_query) == "postgresql://h/d?user=u&password=********"
    assert {"HID%26DEN", "HID&DEN"} < set(in_query.secrets())


@pytest.mark.parametrize(
    "rest",
    [
        "u:hun%ter2@127.0.0.1:1/f", "u:hunter2%@h/f", "u:hun ter2@h/f", "u:hunter2%00@h/f", "u:hun@ter2@h/f",
        "u:hunter2/x@h/f", "u:12/hunter2@h/f", "u:hunter2@h:port/f", "u:hunter2@[::1/f",
    ],
)  # fmt: skip
def test_an_address_that_would_be_misread_is_refused_without_its_password(rest: str, tmp_path: Path) -> None:
    (reported,) = messages({"FOLIOT_DATABASE_URL": f"postgresql://{rest}"}, tmp_path)
    assert "% is written %25" in reported
    assert "hun" not in reported


@pytest.mark.parametrize(
    "rest",
    [
        "", "/f", "h", "u@h/f", "u:p%25ss@h:5432/f", "u:p?#x@h/f", "h1:1,h2:2,[::1]:3/f?target_session_attrs=any",
        "/f?host=/run/pg&password=a@b", "u:p@h?options=-c%20x%3D1", "u:@h:/f", "u@[fe80::1%25eth0]/f",
    ],
)  # fmt: skip
def test_every_address_that_libpq_reads_is_taken(rest: str, tmp_path: Path) -> None:
    url = f"postgres://{rest}"
    assert load({"FOLIOT_DATABASE_URL": url}, {}, tmp_path).database_url == url


def test_secrets_have_no_flag_and_every_setting_says_what_it_is() -> None:
    assert {row.name for row in TABLE if row.flag is None} == {row.name for row in TABLE if row.secret}
    assert all(row.about.endswith(".") for row in TABLE)
    assert all(getattr(Settings(), row.name) == row.default for row in TABLE)


def test_settings_reach_another_process_unchanged(tmp_path: Path) -> None:
    given = {
        "FOLIOT_DATABASE_URL": "postgresql://me:p%40ss@here/db",
        "FOLIOT_COMMAND_UMASK": "077",
        "FOLIOT_BRIDGE_TASKS": "none",
        "FOLIOT_EGRESS_ALLOW": "10.0.0.0/8",
        "FOLIOT_ALLOW_COMMANDS": "yes",
        "FOLIOT_CA_FILE": "ca.pem",
    }
    settings = load(given, {"port": "0"}, tmp_path)
    line = settings.to_json()
    assert line.count(b"\n") == 1
    handed = Settings.from_json(line)
    assert handed.model_dump() == settings.model_dump()
    assert (handed.command_umask, handed.bridge_tasks, handed.ca_file) == (0o77, (), tmp_path / "ca.pem")
    assert "p%40ss" not in repr(handed)


@pytest.mark.requirement(
    "S1-ENV-1", "S1-ENV-2", "S1-ENV-3", "S1-ENV-4", "S1-ENV-5", "S1-ENV-6", "S1-ENV-7", "S2-15"
)
def test_variables_of_other_systems_are_read_while_their_dialect_is_on(tmp_path: Path) -> None:
    theirs = {
        "SCHEDULER_ENABLED": "false",
        "SCHEDULER_TIMEZONE": "Europe/Madrid",
        "SCHEDULER_MAX_RETRIES": "2",
        "SCHEDULER_RETRY_DELAYS": "5,15,30",
        "SCHEDULER_LOCK_TTL": "3600",
        "SCHEDULER_NOTIFY_EMAIL": "false",
        "SCHEDULER_NOTIFY_WHATSAPP": "true",
        "SCHEDULED_JOBS_MAX_CONCURRENT": "7",
    }
    assert set(load(theirs, {}, tmp_path).origins.values()) == {"default"}
    on = {**theirs, "FOLIOT_DIALECTS": "scheduled-jobs,actions", "FOLIOT_DEFAULT_RETRIES": "9"}
    settings = load(on, {}, tmp_path)
    assert (settings.roles, settings.default_timezone) == (("api",), "Europe/Madrid")
    assert (settings.default_retry_delays, settings.max_timeout) == ((300, 900, 1800), 3600)
    assert (settings.worker_concurrency, settings.default_retries) == (7, 9)  # the setting itself wins
    assert (settings.notify_email, settings.notify_whatsapp) == (False, True)
    assert settings.origins["max_timeout"] == "SCHEDULER_LOCK_TTL from the environment"
    refused = {"FOLIOT_DIALECTS": "scheduled-jobs", "SCHEDULER_RETRY_DELAYS": "soon"}
    assert "SCHEDULER_RETRY_DELAYS" in messages(refused, tmp_path)[0]
