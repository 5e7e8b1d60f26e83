import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.TreeSet;
import software.amazon.event.ruler.Machine;

/** Reads one JSON object of rules (name to pattern), then one event per line; prints the names that match each. */
public class Matches {
  public static void main(String[] arguments) throws Exception {
    ObjectMapper json = new ObjectMapper();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Machine machine = new Machine();
    JsonNode rules = json.readTree(lines.readLine());
    for (var rule : rules.properties()) {
      machine.addRule(rule.getKey(), rule.getValue().toString());
    }
    for (String event = lines.readLine(); event != null; event = lines.readLine()) {
      System.out.println(json.writeValueAsString(new TreeSet<>(machine.rulesForJSONEvent(event))));
    }
  }
}
