//! Where values come from: files, profiles, imports, environment, command line, code.

use std::{fs, path::Path};

use super::{super::*, *};

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn name_of(options: LoadOptions) -> String {
    Config::load(options)
        .unwrap_or_else(|errors| panic!("{errors}"))
        .config
        .application_name
}

#[test]
fn later_sources_win() {
    let options = LoadOptions::from_text("spring.application.name: file\n");
    assert_eq!(name_of(options.clone()), "file");
    let options = LoadOptions {
        env: pairs(&[("SPRING_APPLICATION_NAME", "env")]),
        ..options
    };
    assert_eq!(name_of(options.clone()), "env");
    let env = pairs(&[
        ("SPRING_APPLICATION_NAME", "env"),
        (
            "SPRING_APPLICATION_JSON",
            r#"{"spring":{"application":{"name":"json"}}}"#,
        ),
    ]);
    let options = LoadOptions { env, ..options };
    assert_eq!(name_of(options.clone()), "json");
    let options = LoadOptions {
        args: words(&["run", "--spring.application.name=args", "--verbose"]),
        ..options
    };
    assert_eq!(name_of(options.clone()), "args");
    assert_eq!(
        name_of(LoadOptions {
            overrides: pairs(&[("spring.application.name", "code")]),
            ..options
        }),
        "code"
    );
}

#[test]
fn environment_variables_find_bindings_by_their_squashed_names() {
    let yaml = "\
spring.cloud.stream:
  default.consumer.max-attempts: 1
  bindings:
    orders-in: { destination: a, group: g }
    orders-in_2: { destination: b, group: h }
  rocketmq.binder.name-server: x:1
";
    let env = pairs(&[
        ("SPRING_CLOUD_STREAM_BINDINGS_ORDERSIN_DESTINATION", "one"),
        (
            "SPRING_CLOUD_STREAM_BINDINGS_ORDERS_IN_2_DESTINATION",
            "two",
        ),
        ("SPRING_CLOUD_STREAM_ROCKETMQ_BINDER_NAME_SERVER", "a:1;b:2"),
        (
            "SPRING_CLOUD_STREAM_ROCKETMQ_BINDINGS_ORDERSIN_CONSUMER_MAXRECONSUMETIMES",
            "3",
        ),
        ("BINDERY_TOPICS", ""),
        ("LOGGING_LEVEL_MY_CRATE", "debug"),
        ("PATH", "/bin"),
    ]);
    let loaded = Config::load(LoadOptions {
        env,
        ..LoadOptions::from_text(yaml)
    });
    let errors = loaded.unwrap_err();
    assert_eq!(
        errors.diagnostics().iter().map(line).collect::<Vec<_>>(),
        [
            "error unknown-key environment variable BINDERY_TOPICS BINDERY_TOPICS does not match any name",
        ]
    );
    let env = pairs(&[
        ("SPRING_CLOUD_STREAM_BINDINGS_ORDERSIN_DESTINATION", "one"),
        (
            "SPRING_CLOUD_STREAM_BINDINGS_ORDERS_IN_2_DESTINATION",
            "two",
        ),
        ("SPRING_CLOUD_STREAM_ROCKETMQ_BINDER_NAME_SERVER", "a:1;b:2"),
        (
            "SPRING_CLOUD_STREAM_ROCKETMQ_BINDINGS_ORDERSIN_CONSUMER_MAXRECONSUMETIMES",
            "3",
        ),
        ("LOGGING_LEVEL_MY_CRATE", "debug"),
    ]);
    let config = Config::load(LoadOptions {
        env,
        ..LoadOptions::from_text(yaml)
    })
    .unwrap()
    .config;
    assert_eq!(config.bindings["orders-in"].destination, "one");
    assert_eq!(config.bindings["orders-in_2"].destination, "two");
    assert_eq!(config.rocketmq.binder.name_servers, ["a:1", "b:2"]);
    assert_eq!(
        config
            .rocketmq
            .binding("orders-in")
            .consumer
            .max_reconsume_times,
        3
    );
    assert_eq!(config.logging.directives(), "info,my::crate=debug");
}

#[test]
fn a_variable_that_names_no_binding_is_an_error_with_the_nearest_one() {
    let options = LoadOptions {
        env: pairs(&[
            ("SPRING_CLOUD_STREAM_BINDINGS_INPT_GROUP", "g"),
            ("SPRING_CLOUD_STREAM_DEFAULT_BNDER", "x"),
        ]),
        ..LoadOptions::from_text(
            "spring.cloud.stream.bindings.input: { destination: t, group: g, consumer.max-attempts: 1 }\n",
        )
    };
    assert_eq!(
        told(options, Some(&program(&["input"], &[]))),
        [
            "error unknown-key environment variable SPRING_CLOUD_STREAM_BINDINGS_INPT_GROUP SPRING_CLOUD_STREAM_BINDINGS_INPT_GROUP does not match any binding; did you mean input? -> input",
            "error unknown-key environment variable SPRING_CLOUD_STREAM_DEFAULT_BNDER SPRING_CLOUD_STREAM_DEFAULT_BNDER does not match any key -> spring.cloud.stream.default.binder",
        ]
    );
}

#[test]
fn mistakes_in_environment_and_arguments_name_their_source() {
    let options = LoadOptions {
        env: pairs(&[
            ("SERVER_PORT", "tcp://10.0.0.1:80"),
            ("SPRING_APPLICATION_JSON", "{broken"),
        ]),
        args: words(&["--bindery.embeded=true", "--server.port=99999"]),
        ..LoadOptions::from_text("server.port: 80\n")
    };
    let told = told(options, None);
    assert_eq!(
        told[1],
        "error wrong-type environment variable SERVER_PORT `tcp://10.0.0.1:80` is not a value for `SERVER_PORT`"
    );
    assert!(
        told[0].starts_with("error syntax environment variable SPRING_APPLICATION_JSON "),
        "{told:?}"
    );
    assert_eq!(
        told[2],
        "error unknown-key command line argument --bindery.embeded unknown key `embeded` -> embedded"
    );
    assert_eq!(
        told[3],
        "error wrong-value command line argument --server.port `99999` is not a value for `port`"
    );
}

#[test]
fn the_embedded_switch_is_a_value_or_a_section_and_the_environment_turns_it_off() {
    assert!(loaded("bindery.embedded: true\n").config.embedded.is_some());
    let section = "bindery.embedded: { enabled: true, broker-port: 1234, store-dir: /s, broker: { flushDiskType: SYNC_FLUSH } }\n";
    let embedded = loaded(section).config.embedded.unwrap();
    assert_eq!(
        (
            embedded.namesrv_port,
            embedded.broker_port,
            embedded.host.as_str()
        ),
        (0, 1234, "127.0.0.1")
    );
    assert_eq!(embedded.store_dir, Path::new("/s"));
    assert_eq!(embedded.broker["flushDiskType"], "SYNC_FLUSH");
    assert!(
        loaded("bindery.embedded: { broker-port: 1 }\n")
            .config
            .embedded
            .is_none()
    );
    for yaml in ["bindery.embedded: true\n", section] {
        let env = pairs(&[
            ("BINDERY_EMBEDDED", "false"),
            (
                "SPRING_CLOUD_STREAM_ROCKETMQ_BINDER_NAME_SERVER",
                "127.0.0.1:1",
            ),
        ]);
        let config = Config::load(LoadOptions {
            env,
            ..LoadOptions::from_text(yaml)
        })
        .unwrap()
        .config;
        assert!(config.embedded.is_none());
        assert_eq!(config.rocketmq.binder.name_servers, ["127.0.0.1:1"]);
    }
}

#[test]
fn embedded_and_a_name_server_together_are_an_error_that_names_both_places() {
    let yaml = "bindery.embedded: true\nspring.cloud.stream.rocketmq.binder.name-server: a:1\n";
    let errors = load(yaml).unwrap_err();
    let text = errors.to_string();
    assert!(
        text.contains("application.yaml:2:50") && text.contains("application.yaml:1:19"),
        "{text}"
    );
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn in_folder(folder: &Path) -> LoadOptions {
    LoadOptions {
        working_dir: Some(folder.to_owned()),
        ..LoadOptions::default()
    }
}

#[test]
fn the_crates_folder_comes_before_the_working_folder_and_an_asked_for_file_before_both() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(
        root,
        "work/application.yaml",
        "spring.application.name: work\n",
    );
    write(root, "work/config/application.yaml", "server.port: 1\n");
    write(root, "crate/Cargo.toml", "");
    write(root, "other.yaml", "spring.application.name: other\n");
    let options = LoadOptions {
        manifest_dir: Some(root.join("crate")),
        ..in_folder(&root.join("work"))
    };
    let config = Config::load(options.clone()).unwrap().config;
    assert_eq!(
        (config.application_name.as_str(), config.server.port),
        ("work", Some(1))
    );
    write(
        root,
        "crate/application.yaml",
        "spring.application.name: crate\n",
    );
    assert_eq!(name_of(options.clone()), "crate");
    let asked = LoadOptions {
        args: words(&["--bindery.config=../other.yaml"]),
        ..options.clone()
    };
    assert_eq!(name_of(asked), "other");
    let absent = LoadOptions {
        args: words(&["--bindery.config=gone.yaml"]),
        ..options
    };
    assert!(told(absent, None)[0].starts_with("error file cannot read gone.yaml: "));
}

#[test]
fn two_yaml_spellings_in_one_folder_are_an_error() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "application.yaml", "");
    write(root.path(), "application.yml", "");
    assert_eq!(
        told(in_folder(root.path()), None),
        ["error conflict both application.yaml and application.yml exist; keep one"]
    );
}

#[test]
fn imports_override_their_document_and_may_be_optional() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(
        root,
        "application.yaml",
        "spring:\n  config.import: [more/a.yaml, 'optional:gone.yaml', 'optional:configtree:secrets/']\n  application.name: base\n",
    );
    write(
        root,
        "more/a.yaml",
        "spring:\n  config.import: b.properties\n  application.name: a\nserver.port: 5\n",
    );
    write(root, "more/b.properties", "spring.application.name=b\n");
    write(
        root,
        "secrets/spring.cloud.stream.rocketmq.binder.group",
        "tree-group\n",
    );
    let config = Config::load(in_folder(root)).unwrap().config;
    assert_eq!(
        (config.application_name.as_str(), config.server.port),
        ("b", Some(5))
    );
    assert_eq!(config.rocketmq.binder.group.as_deref(), Some("tree-group"));
    write(
        root,
        "more/b.properties",
        "spring.config.import=a.yaml,gone.yaml,http://x/y\n",
    );
    let told = told(in_folder(root), None);
    assert_eq!(
        told,
        [
            "error conflict more/b.properties:1:22 files import each other in a circle: more/a.yaml → more/b.properties → more/a.yaml",
            "error file more/b.properties:1:22 more/gone.yaml does not exist -> optional:gone.yaml",
            "error unsupported more/b.properties:1:22 cannot import from `http:`; a file or `configtree:` is supported",
        ]
    );
}

#[test]
fn mistakes_in_files_of_inactive_profiles_are_told() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "application.yaml", "server.port: 1\n");
    write(root.path(), "application-prod.yaml", "server.prot: 1\n");
    assert_eq!(
        told(in_folder(root.path()), None),
        ["error unknown-key application-prod.yaml:1:8 unknown key `prot` -> port"]
    );
    let active = LoadOptions {
        env: pairs(&[("SPRING_PROFILES_ACTIVE", "prod")]),
        ..in_folder(root.path())
    };
    assert_eq!(told(active, None).len(), 1);
}

#[test]
fn profiles_choose_documents_and_must_not_choose_profiles_themselves() {
    let yaml = "\
spring.application.name: base
---
spring.profiles: old
spring.application.name: old
---
spring.config.activate.on-profile: a & b | c
spring.profiles.active: x
";
    let told = told(
        LoadOptions {
            args: words(&["--spring.profiles.active=old"]),
            ..LoadOptions::from_text(yaml)
        },
        None,
    );
    assert_eq!(
        told,
        [
            "warning deprecated 3:1 `spring.profiles` is the old spelling of `spring.config.activate.on-profile` -> spring.config.activate.on-profile",
            "error wrong-value 6:36 not a profile expression: `&` and `|` need parentheses between them",
            "error conflict 7:1 `spring.profiles.active` cannot stand in a document that counts only with a profile",
        ]
    );
    let config = loaded("spring.profiles.active: ${P:x,y}\n---\nspring.config.activate.on-profile: y\nserver.port: 7\n").config;
    assert_eq!(
        (config.profiles, config.server.port),
        (words(&["x", "y"]), Some(7))
    );
}

#[test]
fn a_program_without_any_file_is_told_where_it_was_looked_for() {
    let root = tempfile::tempdir().unwrap();
    let errors = Config::load_for(in_folder(root.path()), &program(&["in"], &[])).unwrap_err();
    assert!(
        errors
            .to_string()
            .contains("there is no application.yaml\n   = looked in "),
        "{errors}"
    );
    assert!(Config::load_for(in_folder(root.path()), &Usage::default()).is_ok());
}

#[test]
fn explain_tells_value_and_origin_of_a_key() {
    let options = LoadOptions {
        args: words(&["--server.port=9"]),
        ..LoadOptions::from_text("server:\n  port: 8\n")
    };
    let loaded = Config::load(options).unwrap();
    assert_eq!(
        loaded.explain("server.port").unwrap(),
        "\
server.port
  The port of the web server; 0: any free one.
  takes: a whole number from 0 to 65535
  default: 8080
  value: 9  (command line argument --server.port)
  overrides: 8  (application.yaml:2:9)
"
    );
    assert_eq!(
        loaded
            .explain("server.prot")
            .unwrap_err()
            .suggestion
            .as_deref(),
        Some("server.port")
    );
    let text = loaded
        .explain("spring.cloud.stream.rocketmq.bindings.x.consumer.push.orderly")
        .unwrap();
    assert!(text.ends_with("value: the default\n"), "{text}");
}

#[test]
fn own_sections_are_read_into_own_types() {
    #[derive(Debug, serde::Deserialize, PartialEq)]
    #[serde(rename_all = "kebab-case")]
    struct Limits {
        max_items: u32,
        regions: Vec<String>,
        zip: String,
    }
    let yaml = "shop:\n  limits: { max-items: 3, regions: [eu, '${R:us}'], zip: '0123' }\n";
    let limits: Limits = loaded(yaml).section("shop.limits").unwrap();
    assert_eq!(
        limits,
        Limits {
            max_items: 3,
            regions: words(&["eu", "us"]),
            zip: "0123".to_owned()
        }
    );
    let error = loaded("shop.limits: { max-items: x, regions: [], zip: a }\n")
        .section::<Limits>("shop.limits")
        .unwrap_err();
    assert!(
        error.to_string().contains("application.yaml:1:27"),
        "{error}"
    );
}
