package com.oracle.bmc;

import java.io.IOException;

/** Stands in for Oracle's cloud library, which no package has: Connector/J's login with it finds no configuration. */
public final class ConfigFileReader {
    private ConfigFileReader() {
    }

    public static ConfigFile parseDefault(String profile) throws IOException {
        throw new IOException("Oracle's cloud library is not here");
    }

    public static ConfigFile parse(String path, String profile) throws IOException {
        return parseDefault(profile);
    }

    /** A configuration, of which there is none. */
    public static final class ConfigFile {
        public String get(String key) {
            return null;
        }
    }
}
