//! Links inside this repository: the file is there, and the heading is in it.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::document::{Document, root};

/// What leads nowhere.
pub(crate) fn check(documents: &[Document], document: &Document) -> Vec<String> {
    let folder = Path::new(&document.path).parent().unwrap();
    let problem = |target: &str| {
        let (path, anchor) =
            target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
        let path = if path.is_empty() { PathBuf::from(&document.path) } else { tidy(&folder.join(path)) };
        let other = documents.iter().chain([document]).find(|other| Path::new(&other.path) == path);
        match (anchor, other) {
            (None, _) if other.is_some() || root().join(&path).exists() => None,
            (None, _) => Some(format!("there is no {}", path.display())),
            (Some(_), None) => Some(format!("{} is no document", path.display())),
            (Some(anchor), Some(other)) => {
                let anchors = anchors(other);
                let is_missing = !anchors.iter().any(|known| known == anchor);
                is_missing.then(|| format!("{} has only {anchors:?}", other.path))
            }
        }
    };
    let found = targets(document).into_iter().filter_map(|target| Some((target, problem(target)?)));
    found.map(|(target, problem)| format!("{}: the link ({target}): {problem}", document.path)).collect()
}

/// What `docs/README.md` does not name of the documents beside it, and `docs/adr/README.md` of the decisions.
pub(crate) fn check_indexes(documents: &[Document]) -> Vec<String> {
    let mut problems = Vec::new();
    for index in ["docs/README.md", "docs/adr/README.md"] {
        let Some(page) = documents.iter().find(|document| document.path == index) else {
            problems.push(format!("there is no {index}"));
            continue;
        };
        let folder = Path::new(index).parent().unwrap();
        let linked: Vec<PathBuf> = targets(page)
            .into_iter()
            .map(|target| tidy(&folder.join(target.split('#').next().unwrap())))
            .collect();
        let beside = documents.iter().filter(|document| Path::new(&document.path).parent() == Some(folder));
        let forgotten = beside
            .filter(|document| document.path != index && !linked.contains(&PathBuf::from(&document.path)));
        problems.extend(forgotten.map(|document| format!("{index} has no link to {}", document.path)));
    }
    problems
}

/// What is linked to inside the repository.
fn targets(document: &Document) -> Vec<&str> {
    let prose = document.prose().into_iter();
    let links = prose.flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split(')').next()));
    links.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

/// Without `..` and `.`.
fn tidy(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut so_far, part| {
        match part {
            Component::ParentDir => {
                so_far.pop();
            }
            Component::CurDir => {}
            other => so_far.push(other),
        }
        so_far
    })
}

/// The names that headings get, as GitHub makes them.
fn anchors(document: &Document) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = document.prose().into_iter().filter(|line| line.starts_with('#'));
    headings
        .map(|heading| {
            let text = heading.trim_start_matches('#').trim().to_lowercase();
            let kept =
                text.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
            let name: String = kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect();
            let count = seen.entry(name.clone()).or_default();
            *count += 1;
            if *count == 1 { name } else { format!("{name}-{}", *count - 1) }
        })
        .collect()
}
