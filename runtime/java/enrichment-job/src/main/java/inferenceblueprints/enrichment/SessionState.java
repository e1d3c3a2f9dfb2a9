package inferenceblueprints.enrichment;

import java.util.ArrayList;
import java.util.List;

/** What the job keeps of an open session. Flink's serializer for such classes allows new fields in later versions. */
public class SessionState {
    /** Identifies the session to the router. */
    public String session = "";
    /** Time of the newest event, in milliseconds since 1970. */
    public long newest;
    /** Events of the session, without repeated ones. */
    public int accepted;
    /** The newest version; 0 before the first. */
    public long version;
    /** The user's message of the newest version. */
    public String text = "";
    /** Events in that message. */
    public int inText;
    /** Newest events, at most as many as the configuration says. The last {@link #waiting} ones are in no version yet. */
    public List<Event> kept = new ArrayList<>();
    /** Events that are in no version yet. */
    public int waiting;
    /** When the last event came in, by this machine's clock. */
    public long seen;
    /** When the waiting events become a version; 0 if none wait. */
    public long due;
    /** Since when the waiting events are due and find no place among the calls; 0 if they do not. */
    public long held;
    /** When to look whether the session is over; 0 if nothing is scheduled. */
    public long check;

    /** Creates the state of a new session. */
    public SessionState() {}
}
