//! Links inside this repository: the file is there, and the heading is in it.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::document::{Document, root};

pub(crate) fn check(documents: &[Document], document: &Document) {
    let folder = Path::new(&document.path).parent().unwrap().to_owned();
    for (number, target) in targets(document) {
        let (path, anchor) =
            target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
        let path = if path.is_empty() { PathBuf::from(&document.path) } else { tidy(&folder.join(path)) };
        let at = format!("{}, link {number}: ({target})", document.path);
        assert!(root().join(&path).exists(), "{at}: there is no {}", path.display());
        let Some(anchor) = anchor else { continue };
        let other = documents.iter().find(|other| Path::new(&other.path) == path);
        let other = other.unwrap_or_else(|| panic!("{at}: {} is no document", path.display()));
        let anchors = anchors(other);
        assert!(anchors.iter().any(|known| known == anchor), "{at}: {} has only {anchors:?}", other.path);
    }
}

/// `docs/README.md` names every document beside it, `docs/adr/README.md` every decision.
pub(crate) fn check_indexes(documents: &[Document]) {
    for index in ["docs/README.md", "docs/adr/README.md"] {
        let page =
            documents.iter().find(|document| document.path == index).unwrap_or_else(|| panic!("no {index}"));
        let folder = Path::new(index).parent().unwrap();
        let linked: Vec<PathBuf> = targets(page)
            .into_iter()
            .map(|(_, target)| tidy(&folder.join(target.split('#').next().unwrap())))
            .collect();
        for document in documents.iter().filter(|document| Path::new(&document.path).parent() == Some(folder))
        {
            let is_linked =
                document.path == index || linked.iter().any(|path| path == Path::new(&document.path));
            assert!(is_linked, "{index} has no link to {}", document.path);
        }
    }
}

/// What is linked to inside the repository, numbered.
fn targets(document: &Document) -> Vec<(usize, &str)> {
    let prose = document.prose().into_iter();
    let links = prose.flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split(')').next()));
    let inside = links.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    inside.enumerate().map(|(index, target)| (index + 1, target)).collect()
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
