//! The scenarios of this repository are legal, and each says what it shows.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Scenario;

fn scenario_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let mut files: Vec<PathBuf> = (fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

fn scenarios() -> Vec<(String, String, Scenario)> {
    (scenario_files().iter())
        .map(|path| {
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(path).unwrap();
            match Scenario::parse(&file, &text) {
                Ok(scenario) => (file, text, scenario),
                Err(bad) => panic!("{bad}"),
            }
        })
        .collect()
}

#[test]
fn every_scenario_file_is_legal() {
    // A folder that was moved would otherwise pass for want of files.
    assert!(scenarios().len() >= 30, "only {}", scenarios().len());
}

#[test]
fn every_scenario_file_says_what_it_shows_and_expects_something() {
    for (file, text, scenario) in scenarios() {
        assert!(text.starts_with("# "), "{file} has no comment at its top");
        assert!(!scenario.expectations.is_empty(), "{file} expects nothing");
        assert!(scenario.duration_us <= 20_000_000, "{file} is too long");
    }
}

#[test]
fn the_name_of_a_scenario_file_tells_its_algorithm() {
    for (file, _, scenario) in scenarios() {
        let suffix = format!("-{}.toml", scenario.algorithm);
        assert!(file.ends_with(&suffix), "{file} does not end with {suffix}");
    }
}

#[test]
fn no_expectation_comes_sooner_than_3_s_after_a_fault() {
    // Elections take a few T after Q, and Check runs every P: 3 s leave room for loss as well.
    for (file, _, scenario) in scenarios() {
        for expectation in &scenario.expectations {
            let last_us = (scenario.actions.iter())
                .map(|timed| timed.at_us)
                .filter(|at_us| *at_us < expectation.at_us)
                .max();
            let quiet_us = expectation.at_us - last_us.unwrap_or(0);
            let line = expectation.line;
            assert!(quiet_us >= 3_000_000, "{file}:{line} comes after {quiet_us} us");
        }
    }
}
