//! A child process that says in one line when it is ready, and whose further lines can be waited for.
use std::{
    io::{self, BufRead, BufReader, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

/// A running program. Killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl Process {
    /// Starts a program and collects its standard output and error, line by line.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (sender, lines) = mpsc::sync_channel(10_000);
        if let Some(out) = child.stdout.take() {
            collect(out, sender.clone());
        }
        if let Some(err) = child.stderr.take() {
            collect(err, sender);
        }
        Ok(Self {
            child,
            lines,
            seen: Vec::new(),
        })
    }

    /// Waits for a line that contains `text`, also among those already seen, and returns it.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] with all lines so far when it does not come in time or the program ended without it.
    pub fn wait_for(&mut self, text: &str, within: Duration) -> io::Result<String> {
        if let Some(line) = self.seen.iter().find(|line| line.contains(text)) {
            return Ok(line.clone());
        }
        let deadline = Instant::now() + within;
        loop {
            match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return Ok(line);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let all = self.seen.join("\n");
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        format!("no `{text}` in:\n{all}"),
                    ));
                }
            }
        }
    }

    /// All lines so far, without waiting.
    pub fn output(&mut self) -> &[String] {
        self.seen.extend(self.lines.try_iter());
        &self.seen
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, and waits until it is gone.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }

    /// SIGINT, as Ctrl-C sends it, and waits for the end.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when it does not end in time.
    pub fn interrupt(&mut self, within: Duration) -> io::Result<ExitStatus> {
        let pid = self.id().to_string();
        Command::new("kill").args(["-INT", &pid]).status()?;
        self.wait(within)
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when it does not end in time.
    pub fn wait(&mut self, within: Duration) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::park_timeout(Duration::from_millis(5));
        }
        let all = self.output().join("\n");
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("still running after {within:?}:\n{all}"),
        ))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn collect(pipe: impl Read + Send + 'static, lines: mpsc::SyncSender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
}
