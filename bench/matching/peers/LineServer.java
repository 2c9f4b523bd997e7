import com.graphhopper.GraphHopper;
import com.graphhopper.config.Profile;
import com.graphhopper.matching.MapMatching;
import com.graphhopper.matching.MatchResult;
import com.graphhopper.matching.Observation;
import com.graphhopper.util.GHUtility;
import com.graphhopper.util.PMap;
import com.graphhopper.util.PointList;
import com.graphhopper.util.shapes.GHPoint;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Matches drives with GraphHopper. A drive is a line "sigma lon,lat lon,lat ..."; the answer is a line with the way that was driven, cut
 * at the first and last position, or "error: why". Arguments: the map, a folder for what is made of it.
 */
public final class LineServer {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        GraphHopper hopper = new GraphHopper();
        hopper.setOSMFile(args[0]);
        hopper.setGraphHopperLocation(args[1]);
        hopper.setEncodedValuesString("car_access, car_average_speed");
        hopper.setProfiles(new Profile("car").setCustomModel(GHUtility.loadCustomModelFromJar("car.json")));
        hopper.setMinNetworkSize(0);
        // Lines keep every node of the map: answers are compared node by node.
        hopper.getReaderConfig().setMaxWayPointDistance(0);
        hopper.importOrLoad();
        out.println("ready");
        out.flush();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"), 1 << 20);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(hopper, line.split(" ")));
            out.flush();
        }
    }

    private static String answer(GraphHopper hopper, String[] words) {
        List<Observation> drive = new ArrayList<>(words.length);
        for (int i = 1; i < words.length; i++) {
            int comma = words[i].indexOf(',');
            drive.add(new Observation(new GHPoint(Double.parseDouble(words[i].substring(comma + 1)), Double.parseDouble(words[i].substring(0, comma)))));
        }
        try {
            MapMatching matcher = MapMatching.fromGraphHopper(hopper, new PMap().putObject("profile", "car"));
            matcher.setMeasurementErrorSigma(Double.parseDouble(words[0]));
            MatchResult result = matcher.match(drive);
            PointList way = result.getMergedPath().calcPoints();
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < way.size(); i++)
                text.append(String.format(Locale.ROOT, "%.6f,%.6f ", way.getLon(i), way.getLat(i)));
            return text.toString();
        } catch (RuntimeException e) {
            return "error: " + String.valueOf(e.getMessage()).replace('\n', ' ');
        }
    }
}
