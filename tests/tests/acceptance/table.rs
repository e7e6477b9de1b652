//! Running the rows of one back end side by side, and the table of what came of them.

use std::fmt;
use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use crate::stage::{BackEnd, Stage};
use crate::{Company, Row};

/// Longer than the slowest row on a busy machine; real time.
const DEADLINE: Duration = Duration::from_secs(240);

/// What became of a row on a back end.
#[derive(Debug)]
pub(crate) struct Cell {
    took: Duration,
    result: Result<String, String>,
}

/// Runs the rows, each on a thread, a runtime and a broker of its own: they spend their time waiting. Those that want no
/// company follow one by one.
pub(crate) fn run_all(back_end: BackEnd, rows: &[Row]) -> Vec<Cell> {
    std::thread::scope(|scope| {
        let start = |row: &Row| {
            let row = *row;
            scope.spawn(move || run(row, back_end))
        };
        let beside: Vec<_> = rows
            .iter()
            .map(|row| (row.company == Company::Any).then(|| start(row)))
            .collect();
        let beside: Vec<_> = beside.into_iter().map(|row| row.map(end)).collect();
        let ended = beside.into_iter().zip(rows);
        ended
            .map(|(cell, row)| cell.unwrap_or_else(|| end(start(row))))
            .collect()
    })
}

fn end(row: std::thread::ScopedJoinHandle<'_, Cell>) -> Cell {
    row.join().expect("panics are caught in the thread")
}

fn run(row: Row, back_end: BackEnd) -> Cell {
    let began = Instant::now();
    let ran = catch_unwind(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let body = async { (row.body)(Stage::new(back_end).await).await };
            let in_time = tokio::time::timeout(DEADLINE, body).await;
            in_time.unwrap_or_else(|_| panic!("not done within {DEADLINE:?}"))
        })
    });
    let cell = Cell {
        took: began.elapsed(),
        result: ran.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_else(|| "a panic without words".to_owned())
        }),
    };
    println!("{back_end:>8} {:>2} {}: {cell}", row.chapter, row.name);
    cell
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        match &self.result {
            Ok(ran) => write!(f, "ok, {seconds:.1} s: {ran}"),
            Err(why) => write!(f, "FAILED after {seconds:.1} s: {why}"),
        }
    }
}

/// The results, row by row and back end by back end.
pub(crate) struct Table {
    rows: Vec<Row>,
    columns: Vec<(BackEnd, Option<Vec<Cell>>)>,
}

impl Table {
    pub(crate) fn new(rows: &[Row]) -> Self {
        Self {
            rows: rows.to_vec(),
            columns: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, back_end: BackEnd, cells: Vec<Cell>) {
        self.columns.push((back_end, Some(cells)));
    }

    pub(crate) fn not_asked_for(&mut self, back_end: BackEnd) {
        self.columns.push((back_end, None));
    }

    /// Whether every row that ran passed, and at least one did run.
    pub(crate) fn is_good(&self) -> bool {
        let mut cells = self
            .columns
            .iter()
            .filter_map(|(_, cells)| cells.as_ref())
            .flatten()
            .peekable();
        cells.peek().is_some() && cells.all(|cell| cell.result.is_ok())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{:<28}", "chapter and row")?;
        for (back_end, _) in &self.columns {
            write!(f, "{back_end:>14}")?;
        }
        writeln!(f)?;
        for (index, row) in self.rows.iter().enumerate() {
            write!(f, "{:>2} {:<25}", row.chapter, row.name)?;
            for (_, cells) in &self.columns {
                let shown = match cells.as_ref().and_then(|cells| cells.get(index)) {
                    None => "-".to_owned(),
                    Some(cell) => {
                        let verdict = if cell.result.is_ok() { "ok" } else { "FAILED" };
                        format!("{verdict} {:.1} s", cell.took.as_secs_f64())
                    }
                };
                write!(f, "{shown:>14}")?;
            }
            writeln!(f)?;
        }
        for (back_end, cells) in &self.columns {
            if cells.is_none() {
                writeln!(f, "{back_end}: not asked for: set BINDERY_NAMESRV")?;
            }
        }
        Ok(())
    }
}
