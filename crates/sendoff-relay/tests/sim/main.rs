//! Relays on the memory store in a world where everything goes wrong, in virtual time: one seed is one history, the same each time.
//!
//! `SIM_SEED=7` runs that seed alone and prints what became of it; `SIM_SEEDS` and `SIM_FROM` say how many and from which.

mod checker;
mod faulty_store;
mod history;
mod incarnation;
mod life;
mod mutant;
mod plan;
mod producers;
mod recording_store;
mod seeds;
mod sink;
mod world;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use self::mutant::Mutant;

/// So many seeds where nobody says how many; `cargo xtask test` asks for many more.
const SEEDS: u64 = 300;

/// So many seeds are run twice.
const REPEATED: u64 = 200;

/// A bug that was put in on purpose is found within so many seeds.
const MUTANT_SEEDS: u64 = 500;

/// Seeds that have shown a bug once.
const KNOWN: [u64; 1] = [60_247];

fn main() -> ExitCode {
    let mut trials = vec![
        Trial::test("seeds", seeds),
        Trial::test("known_seeds", known_seeds),
        Trial::test("a_seed_does_the_same_each_time", same_each_time),
    ];
    trials.extend(
        Mutant::ALL.map(|mutant| Trial::test(format!("mutant::{}", mutant.name()), move || is_found(mutant))),
    );
    let cases = checker::trials::all().into_iter();
    trials.extend(cases.map(|(name, case)| Trial::test(format!("checker::{name}"), case)));
    let mut arguments = Arguments::from_args();
    // The seeds use every processor by themselves.
    arguments.test_threads.get_or_insert(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn number(name: &str) -> Result<Option<u64>, Failed> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| Failed::from(format!("{name}={text:?} is no number")))
}

fn seeds() -> Result<(), Failed> {
    let (from, count) = match number("SIM_SEED")? {
        Some(seed) => (seed, 1),
        None => (number("SIM_FROM")?.unwrap_or(0), number("SIM_SEEDS")?.unwrap_or(SEEDS)),
    };
    let totals = seeds::run(from, count).map_err(|found| Failed::from(found.to_string()))?;
    println!("{totals}");
    Ok(())
}

fn known_seeds() -> Result<(), Failed> {
    for seed in KNOWN {
        seeds::judge(seed, None).map_err(|found| Failed::from(found.to_string()))?;
    }
    Ok(())
}

fn same_each_time() -> Result<(), Failed> {
    for seed in 0..REPEATED {
        let (first, second) = (life::live(seed, None)?.1, life::live(seed, None)?.1);
        if first != second {
            let both = first.iter().zip(&second);
            let differs = both.into_iter().find(|(first, second)| first != second);
            return Err(
                format!("seed {seed} differs: {differs:?}, {} and {}", first.len(), second.len()).into()
            );
        }
    }
    Ok(())
}

fn is_found(mutant: Mutant) -> Result<(), Failed> {
    for seed in 0..MUTANT_SEEDS {
        if let Err(found) = seeds::judge(seed, Some(mutant)) {
            let violation = &found.violation;
            println!("{}: found after {} seeds by {violation}", mutant.name(), seed + 1);
            if mutant.letters().contains(&violation.letter) {
                return Ok(());
            }
            return Err(format!("found by the wrong letter: {found}").into());
        }
    }
    Err(format!("{} survives {MUTANT_SEEDS} seeds", mutant.name()).into())
}
