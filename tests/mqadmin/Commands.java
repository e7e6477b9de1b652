import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Runs mqadmin commands of a script in one process and judges what they print.
 *
 * <pre>
 * $ command and its arguments      ${NAME} stands for what was given on the command line, or kept before
 * ~ pattern                        must be found in its output
 * ! pattern                        must not be found
 * = NAME pattern                   keeps the first group of what is found
 * ? seconds                        runs the command again until all holds, for so long
 * </pre>
 *
 * Arguments: script, name server, NAME=value …; prints one line a command, exits with 1 when one failed.
 */
public final class Commands {
    private record Command(List<String> words, List<String> wanted, List<String> unwanted, List<String[]> kept, int[] patience) {}

    private static final PrintStream OUT = System.out;
    private static final Map<String, String> NAMES = new HashMap<>();

    public static void main(String[] args) throws Exception {
        NAMES.put("namesrv", args[1]);
        for (int i = 2; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);
            NAMES.put(pair[0], pair[1]);
        }
        int failed = 0;
        List<Command> commands = read(Files.readAllLines(Path.of(args[0])));
        for (Command command : commands) {
            String fault = judge(command);
            OUT.println((fault == null ? "PASS " : "FAIL ") + String.join(" ", command.words()) + (fault == null ? "" : "\n" + fault));
            failed += fault == null ? 0 : 1;
        }
        OUT.println(commands.size() - failed + " passed, " + failed + " failed");
        OUT.flush();
        Runtime.getRuntime().halt(failed == 0 ? 0 : 1);
    }

    private static List<Command> read(List<String> lines) {
        List<Command> commands = new ArrayList<>();
        for (String line : lines) {
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            String rest = line.substring(1).trim();
            Command last = commands.isEmpty() ? null : commands.get(commands.size() - 1);
            switch (line.charAt(0)) {
                case '$' -> commands.add(new Command(List.of(rest.split(" +")), new ArrayList<>(), new ArrayList<>(), new ArrayList<>(), new int[1]));
                case '~' -> last.wanted().add(rest);
                case '!' -> last.unwanted().add(rest);
                case '=' -> last.kept().add(rest.split(" +", 2));
                case '?' -> last.patience()[0] = Integer.parseInt(rest);
                default -> throw new IllegalArgumentException(line);
            }
        }
        return commands;
    }

    /** What is wrong with the command's output; null when nothing is. */
    private static String judge(Command command) throws Exception {
        long deadline = System.nanoTime() + command.patience()[0] * 1_000_000_000L;
        while (true) {
            String output = run(command.words());
            String fault = fault(command, output);
            if (fault == null || System.nanoTime() >= deadline) {
                return fault == null ? null : "  " + fault + "\n" + head(output);
            }
            Thread.sleep(500);
        }
    }

    private static String fault(Command command, String output) {
        for (String wanted : command.wanted()) {
            if (!find(wanted, output).find()) {
                return "not found: " + wanted;
            }
        }
        for (String unwanted : command.unwanted()) {
            if (find(unwanted, output).find()) {
                return "found: " + unwanted;
            }
        }
        for (String[] kept : command.kept()) {
            Matcher found = find(kept[1], output);
            if (!found.find()) {
                return "not found, to be kept as " + kept[0] + ": " + kept[1];
            }
            NAMES.put(kept[0], found.group(1));
        }
        return null;
    }

    private static Matcher find(String pattern, String output) {
        return Pattern.compile(filled(pattern).replace("${", "\\$\\{"), Pattern.MULTILINE).matcher(output);
    }

    private static String filled(String text) {
        for (Map.Entry<String, String> name : NAMES.entrySet()) {
            text = text.replace("${" + name.getKey() + "}", name.getValue());
        }
        return text;
    }

    /** The first lines of an output. */
    private static String head(String output) {
        return output.lines().filter(line -> !line.isBlank()).limit(12).map(line -> "    " + line).collect(Collectors.joining("\n"));
    }

    private static String run(List<String> words) throws Exception {
        List<String> command = new ArrayList<>();
        for (String word : words) {
            // A blank within an argument is written as an underscore between tildes.
            command.add(filled(word).replace("~_~", " "));
        }
        if (!command.contains("-n")) {
            command.add("-n");
            command.add(NAMES.get("namesrv"));
        }
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        PrintStream captured = new PrintStream(output, true, StandardCharsets.UTF_8);
        PrintStream err = System.err;
        System.setOut(captured);
        // Commands that fail print a stack trace there: what the broker answered is part of it.
        System.setErr(captured);
        try {
            MQAdminStartup.main0(command.toArray(new String[0]), null);
        } finally {
            System.setOut(OUT);
            System.setErr(err);
        }
        return output.toString(StandardCharsets.UTF_8);
    }
}
