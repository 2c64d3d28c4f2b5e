//! What this process has used.

/// User and system time so far, in seconds.
pub(crate) fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which may have spaces and brackets in it.
    let rest = text.rsplit_once(") ")?.1;
    let fields: Vec<&str> = rest.split(' ').collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    // What Linux counts in, whatever the kernel's own clock.
    Some(ticks / 100.0)
}

/// The most memory it has had, in MiB.
pub(crate) fn rss_mib() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok()? / 1024.0)
}
